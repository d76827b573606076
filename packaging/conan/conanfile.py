# SPDX-License-Identifier: MIT
"""quiesce for Conan 2: `conan create packaging/conan`, in the source tree; shared by `-o quiesce/*:shared=True`."""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load, rm, rmdir
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain
from conan.tools.system.package_manager import Apt, Dnf, PacMan


class QuiesceConan(ConanFile):
    name = "quiesce"
    license = "MIT"
    url = homepage = "https://quiesce.example"
    description = "RCU, hazard pointers and per-CPU locks for userspace, under the kernel's names"
    topics = "rcu", "hazard-pointers", "concurrency"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}
    tool_requires = "meson/[>=1.0]"

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        self.version = re.search(r"version: '([^']*)'", load(self, os.path.join(self._root(), "meson.build")))[1]

    def export_sources(self):
        copy(self, "*", self._root(), self.export_sources_folder, excludes=("build*", ".git*", "*/__pycache__/*", "packaging/*", "*/target/*"))

    def system_requirements(self):  # one header, which is compiled in
        Apt(self).install(["libxxhash-dev"])
        Dnf(self).install(["xxhash-devel"])
        PacMan(self).install(["xxhash"])

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("quiesce is for Linux")

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        basic_layout(self)

    def generate(self):
        toolchain = MesonToolchain(self)
        toolchain.project_options.update(tool="disabled", peers="disabled", tests="false", liburcu="false", tsan="disabled")
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        Meson(self).install()
        for folder in ("share/man", "lib/cmake", "lib/pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, folder))
        if self.options.shared:
            rm(self, "*.a", os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.libs = ["quiesce"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("cmake_target_name", "quiesce::quiesce")
        self.cpp_info.set_property("pkg_config_name", "quiesce")
