# Clp, COIN-OR's solver of linear programs: the target Clp::Clp. Debian's package is coinor-libclp-dev.
find_path(Clp_INCLUDE_DIR coin/Clp_C_Interface.h)
find_library(Clp_LIBRARY Clp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Clp REQUIRED_VARS Clp_LIBRARY Clp_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "scripts/setup.sh installs it (Debian: coinor-libclp-dev)")
if(Clp_FOUND AND NOT TARGET Clp::Clp)
  add_library(Clp::Clp UNKNOWN IMPORTED GLOBAL)  # the libraries above link it too
  set_target_properties(Clp::Clp PROPERTIES IMPORTED_LOCATION "${Clp_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Clp_INCLUDE_DIR}")
endif()
mark_as_advanced(Clp_INCLUDE_DIR Clp_LIBRARY)
