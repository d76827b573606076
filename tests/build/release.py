#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The version is the same everywhere and has moved on since the last release, and each recipe of packaging/ is parsed by its own tool.

scripts/release-check.py is tried on copies of the tree that lack one thing each.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import shutil
import sys
import tempfile

from tap import Tap, execute

VCPKG = ("vcpkg_download_distfile", "vcpkg_extract_source_archive", "vcpkg_configure_meson", "vcpkg_install_meson", "vcpkg_fixup_pkgconfig",
         "vcpkg_cmake_config_fixup", "vcpkg_install_copyright")
MORE = ("meson.build", "src/meson.build", "CHANGELOG.md", "packaging/debian/control", "packaging/nix/default.nix", "packaging/conan/conanfile.py")


def loaded(script):
    spec = importlib.util.spec_from_file_location("release_check", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copied(root, check, version, to):
    """Copy the files that are checked."""
    series = version.rpartition(".")[0]
    for name in {*check.COPIES, *MORE, *(name.format(series) for name in check.NAMED)}:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, to / name)
    shutil.copytree(root / "tests/build/abi", to / "tests/build/abi")
    return to


def replaced(file, pattern, by):
    text = file.read_text()
    after = re.sub(pattern, by, text, count=1, flags=re.M)
    if after == text:
        raise SystemExit(f"release: {file.name} has no {pattern}")
    file.write_text(after)


def try_faults(tap, root, script, tmp):
    """Each fault is found in a copy that has it."""
    check = loaded(script)
    tree = check.Tree(root)
    run = [sys.executable, script, "--always", "--root"]
    released = rf"\g<1>{tree.released}\g<2>"
    for number, (title, name, pattern, by, text) in enumerate((
            ("another version in a header", "include/quiesce/base.h", r'(QUIESCE_VERSION ")[^"]*', r"\g<1>0.0.7", "base.h: version 0.0.7"),
            ("another series in the version script", "src/quiesce.map", r"^QUIESCE_\d+\.\d+", "QUIESCE_0.0", "quiesce.map: version 0.0"),
            ("a recipe of another version", "packaging/arch/PKGBUILD", r"^pkgver=.*", "pkgver=0.0.7", "PKGBUILD: version 0.0.7"),
            ("a manual of another version", "docs/languages.md", r"libquiesce\.so\.\d+\.\d+", "libquiesce.so.0.0", "languages.md: version 0.0"),
            ("a version that has not moved on", "meson.build", r"(^  version: ')[^']*(')", released, f"{tree.released} was released"),
            ("no section of the changelog", "CHANGELOG.md", rf"^## ({tree.sections[0][0]})", "## Later", "begins with Later"))):
        copy = copied(root, check, tree.version, tmp / str(number))
        replaced(copy / name, pattern, by)
        tap.run(f"{title} is found", [*run, copy], want=1, text=text)
        if "PKGBUILD" in name:
            tap.run("--write sets it", [sys.executable, script, "--write", "--root", copy], text="PKGBUILD: written")
    copy = copied(root, check, tree.version, tmp / "good")
    tap.run("a copy without a fault passes", [*run, copy], text="nothing is missing")
    if execute(["git", "--version"]).returncode if shutil.which("git") else True:
        tap.skip("what only a release needs", "git is not to be used")
        return
    git = ["git", "-C", copy, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    execute([*git, "init", "-q"])
    execute([*git, "add", "."])
    execute([*git, "commit", "-q", "-m", "all"])
    execute([*git, "tag", f"v{tree.version}"])
    (copy / "more").write_text("not committed\n")
    found = execute([sys.executable, script, "--root", copy]).stdout
    for text in ("1 files are not committed: more", f"the tag v{tree.version} exists", "docs/figures are older", "placeholders of the address",
                 "the binary interface was not compared"):
        tap.result(text in found, f"before a release: {text}", found)


def parse(tap, name, program, command, text="", **more):
    if shutil.which(program):
        tap.run(f"{name} is parsed by {program}", command, text=text, **more)
    else:
        tap.skip(f"{name} is parsed by {program}", f"{program} is not installed: untried")


def check_recipes(tap, packaging, version, tmp):
    for file in sorted(packaging.glob("conan/**/conanfile.py")):
        compile(file.read_text(), file, "exec")
    manifest = json.loads((packaging / "vcpkg/vcpkg.json").read_text())
    tap.result(manifest["version"] == version, "Conan's recipes are Python, and vcpkg's manifest is JSON", manifest)
    script = tmp / "port.cmake"
    script.write_text("".join(f"function({name})\nendfunction()\n" for name in VCPKG) +
                      f'set(CURRENT_PACKAGES_DIR "{tmp}/none")\ninclude("{packaging}/vcpkg/portfile.cmake")\n')
    parse(tap, "vcpkg's port", "cmake", ["cmake", "-P", script])
    parse(tap, "the PKGBUILD", "bash", ["bash", "-euc", '. "$0"; declare -F build package; echo "$pkgver"', packaging / "arch/PKGBUILD"], text=version)
    parse(tap, "the spec", "rpmspec", ["rpmspec", "-P", packaging / "fedora/quiesce.spec"], text=version, env={"HOME": str(tmp)})
    parse(tap, "the formula", "ruby", ["ruby", "-c", packaging / "homebrew/quiesce.rb"], text="Syntax OK")
    nix = packaging / "nix/default.nix"
    parse(tap, "Nix's expression", "nix-instantiate", ["nix-instantiate", "--parse", nix], text="mkDerivation",
          env={"HOME": str(tmp), "NIX_STATE_DIR": str(tmp / "nix"), "NIX_STORE_DIR": str(tmp / "store")})


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--root", type=pathlib.Path, required=True)
    args.add_argument("--version", required=True)
    opt = args.parse_args()
    tap, script = Tap(), opt.root / "scripts/release-check.py"
    tap.run("versions agree, and are later than the last release's", [sys.executable, script, "--always", "--root", opt.root])
    with tempfile.TemporaryDirectory() as tmp:
        check_recipes(tap, opt.root / "packaging", opt.version, pathlib.Path(tmp))
        try_faults(tap, opt.root, script, pathlib.Path(tmp))
    return tap.finish()


if __name__ == "__main__":
    sys.exit(main())
