# offprof_embed_profiles(OUTPUT NAME...): writes OUTPUT, the C++ source of built_in_profiles(), from profiles/NAME.json.
function(offprof_embed_profiles output)
  set(entries "")
  foreach(name ${ARGN})
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/profiles/${name}.json")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    string(APPEND entries "      {\"${name}\", R\"profile(${text})profile\"},\n")
  endforeach()
  string(CONCAT source
    "#include \"engine/devices/virtual_gpu/model/built_in_profiles.h\"\n\nnamespace offprof {\n\n"
    "const std::vector<std::pair<std::string_view, std::string_view>>& built_in_profiles() {\n"
    "  static const std::vector<std::pair<std::string_view, std::string_view>> profiles = {\n${entries}  };\n"
    "  return profiles;\n}\n\n}  // namespace offprof\n")
  file(CONFIGURE OUTPUT "${output}" CONTENT "${source}" @ONLY)
endfunction()
