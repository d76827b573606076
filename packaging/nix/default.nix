# SPDX-License-Identifier: MIT
# nix-build packaging/nix, in the source tree
{ pkgs ? import <nixpkgs> { } }:
pkgs.stdenv.mkDerivation {
  pname = "quiesce";
  version = builtins.head (builtins.match ".*version: '([0-9.]+)'.*" (builtins.readFile ../../meson.build));
  src = pkgs.lib.cleanSource ../..;
  nativeBuildInputs = [ pkgs.meson pkgs.ninja pkgs.pkg-config pkgs.python3 ];
  buildInputs = [ pkgs.jansson pkgs.xxHash ];
  postPatch = "patchShebangs scripts tools";
  mesonFlags = [ "-Dlibdir=lib" "-Dtests=false" "-Dpeers=disabled" "-Dtsan=disabled" ];
  meta = {
    description = "RCU, hazard pointers and per-CPU locks for userspace, under the kernel's names";
    homepage = "https://quiesce.example";
    license = pkgs.lib.licenses.mit;
    platforms = pkgs.lib.platforms.linux;
  };
}
