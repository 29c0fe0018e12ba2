# SPDX-License-Identifier: Apache-2.0 OR MIT
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LATERALIS REQUIRED IMPORTED_TARGET lateralis-static)
add_executable(app eg_lat.c)
target_link_libraries(app PRIVATE PkgConfig::LATERALIS)
