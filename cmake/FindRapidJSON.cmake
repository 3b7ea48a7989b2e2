# RapidJSON, a fast header-only JSON parser: the target RapidJSON::Headers. Its own configuration file names a fixed
# folder, and so does not work from scripts/carry.sh. The Debian package is rapidjson-dev.
find_path(RapidJSON_INCLUDE_DIR rapidjson/reader.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(RapidJSON REQUIRED_VARS RapidJSON_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "scripts/setup.sh installs it (Debian: rapidjson-dev)")
if(RapidJSON_FOUND AND NOT TARGET RapidJSON::Headers)
  add_library(RapidJSON::Headers INTERFACE IMPORTED)
  set_target_properties(RapidJSON::Headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${RapidJSON_INCLUDE_DIR}")
endif()
mark_as_advanced(RapidJSON_INCLUDE_DIR)
