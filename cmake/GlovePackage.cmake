# The Debian package: what `cmake --install` puts in place, below /usr, laid out as Debian wants it by
# packaging/debian/stage.cmake. scripts/package makes it.
#
# The same source, compiler and SOURCE_DATE_EPOCH give the same bytes.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME glove)
set(CPACK_PACKAGE_VENDOR Glove)
set(CPACK_PACKAGE_CONTACT "Glove maintainers <maintainers@glove.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/stage.cmake)
set(CPACK_GLOVE_SOURCE ${PROJECT_SOURCE_DIR})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "containment for programs that you do not trust, such as AI agents")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"glove exec runs a program that sees the files, variables and network
destinations that you name, and the system's programs, and nothing else. It
needs no daemon and no root.
.
glove doctor tells what a machine lacks for it, and glove log shows what runs
did.")
# Both programs are linked whole, so the package depends on no other.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS OFF)
# What retained file systems of sessions are made with; nothing else needs them.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "e2fsprogs, fuse2fs")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/packaging/debian/postinst
  ${PROJECT_SOURCE_DIR}/packaging/debian/prerm
  ${PROJECT_SOURCE_DIR}/packaging/debian/triggers)

include(CPack)
