# SPDX-License-Identifier: MIT
# A port of vcpkg: copy this directory to ports/quiesce.  SHA512 is 0 until there is a tarball.
vcpkg_download_distfile(archive
  URLS "https://quiesce.example/quiesce-${VERSION}.tar.xz"
  FILENAME "quiesce-${VERSION}.tar.xz"
  SHA512 0)
vcpkg_extract_source_archive(source ARCHIVE "${archive}")
vcpkg_configure_meson(SOURCE_PATH "${source}"
  OPTIONS -Dtool=disabled -Dpeers=disabled -Dtests=false -Dliburcu=false -Dtsan=disabled)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/quiesce)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${source}/LICENSE")
