# SPDX-License-Identifier: Apache-2.0 OR MIT
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(Lateralis 0.1 REQUIRED)
add_executable(app eg_lat.c)
target_link_libraries(app PRIVATE Lateralis::shared)
