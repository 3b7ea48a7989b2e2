# toml++, a parser of TOML: the target tomlplusplus::Headers. Debian's own target links its shared library; the headers
# alone are the whole parser. The Debian package is libtomlplusplus-dev.
find_path(tomlplusplus_INCLUDE_DIR toml++/toml.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(tomlplusplus REQUIRED_VARS tomlplusplus_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "scripts/setup.sh installs it (Debian: libtomlplusplus-dev)")
if(tomlplusplus_FOUND AND NOT TARGET tomlplusplus::Headers)
  add_library(tomlplusplus::Headers INTERFACE IMPORTED)
  set_target_properties(tomlplusplus::Headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${tomlplusplus_INCLUDE_DIR}" INTERFACE_COMPILE_DEFINITIONS TOML_HEADER_ONLY=1)
endif()
mark_as_advanced(tomlplusplus_INCLUDE_DIR)
