# offprof_embed_files(OUTPUT HEADER FUNCTION FOLDER NAME...): writes OUTPUT, the C++ source of FUNCTION(), which HEADER
# declares to return the names and texts of FOLDER/NAME.json.
function(offprof_embed_files output header function folder)
  set(entries "")
  foreach(name ${ARGN})
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${name}.json")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" text)
    string(APPEND entries "      {\"${name}\", R\"profile(${text})profile\"},\n")
  endforeach()
  string(CONCAT source
    "#include \"${header}\"\n\nnamespace offprof {\n\n"
    "const BuiltInFiles& ${function}() {\n"
    "  static const BuiltInFiles files = {\n${entries}  };\n"
    "  return files;\n}\n\n}  // namespace offprof\n")
  file(CONFIGURE OUTPUT "${output}" CONTENT "${source}" @ONLY)
endfunction()
