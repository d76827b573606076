# SPDX-License-Identifier: MIT
class Quiesce < Formula
  desc "RCU, hazard pointers and per-CPU locks for userspace"
  homepage "https://quiesce.example"
  url "https://quiesce.example/quiesce-0.3.0.tar.xz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000" # until there is a tarball
  license "MIT"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "xxhash" => :build
  depends_on "jansson"
  depends_on :linux

  def install
    system "meson", "setup", "build", "-Dtests=false", "-Dpeers=disabled", "-Dtsan=disabled", *std_meson_args
    system "meson", "compile", "-C", "build"
    system "meson", "install", "-C", "build"
  end

  test do
    (testpath/"app.c").write <<~C
      #include <quiesce/rcu.h>
      int main(void) { rcu_read_lock(); rcu_read_unlock(); synchronize_rcu(); return 0; }
    C
    system ENV.cc, "app.c", "-o", "app", "-I#{include}", "-L#{lib}", "-lquiesce"
    system "./app"
  end
end
