# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# The C tracer in a project of CMake:
#
#     find_package(Lateralis REQUIRED)
#     add_executable(app app.c)
#     target_link_libraries(app PRIVATE Lateralis::static)      or Lateralis::shared
#     lateralis_add_schema(app app.pleco)                       makes app.h of it: #include "app.h"

get_filename_component(_lateralis_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
include(CMakeFindDependencyMacro)
find_dependency(Threads)

if(NOT TARGET Lateralis::static)
    add_library(Lateralis::static STATIC IMPORTED)
    set_target_properties(Lateralis::static PROPERTIES
        IMPORTED_LOCATION "${_lateralis_prefix}/lib/liblateralis.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_lateralis_prefix}/include"
        INTERFACE_LINK_LIBRARIES Threads::Threads)
    add_library(Lateralis::shared SHARED IMPORTED)
    set_target_properties(Lateralis::shared PROPERTIES
        IMPORTED_LOCATION "${_lateralis_prefix}/lib/liblateralis.so.0"
        IMPORTED_SONAME liblateralis.so.0
        INTERFACE_INCLUDE_DIRECTORIES "${_lateralis_prefix}/include"
        INTERFACE_COMPILE_DEFINITIONS LAT_SHARED
        INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()

# lateralis_add_schema(TARGET SCHEMA.pleco): generates SCHEMA.h, and again when the schema changes.
# LATERALIS_LAT: the command `lat`, if it is not on the PATH.
function(lateralis_add_schema target schema)
    find_program(LATERALIS_LAT lat REQUIRED)
    get_filename_component(_schema "${schema}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    get_filename_component(_name "${schema}" NAME_WE)
    set(_header "${CMAKE_CURRENT_BINARY_DIR}/${_name}.h")
    add_custom_command(
        OUTPUT "${_header}"
        COMMAND "${LATERALIS_LAT}" pleco gen "${_schema}" --c "${_header}"
        DEPENDS "${_schema}"
        VERBATIM)
    target_sources(${target} PRIVATE "${_header}")
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()

unset(_lateralis_prefix)
