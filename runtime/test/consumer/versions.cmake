# A LibTorch of another release, or of the other ABI, is refused when a project is configured, in words that say what to
# do. ${PACKAGE}: our package's folder; the LibTorch is a package of that version with nothing in it.
function(expect version flags)
  file(REMOVE_RECURSE ${FOLDER})
  file(WRITE ${FOLDER}/torch/TorchConfig.cmake "
set(TORCH_FOUND TRUE)
if(NOT TARGET torch)
  add_library(torch INTERFACE IMPORTED)
  set_target_properties(torch PROPERTIES INTERFACE_COMPILE_OPTIONS \"${flags}\")
endif()
")
  file(WRITE ${FOLDER}/torch/TorchConfigVersion.cmake "
set(PACKAGE_VERSION ${version})
set(PACKAGE_VERSION_COMPATIBLE TRUE)
")
  file(WRITE ${FOLDER}/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(other LANGUAGES CXX)
find_package(Accelerate REQUIRED)
")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${FOLDER} -B ${FOLDER}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
      -DTorch_DIR=${FOLDER}/torch -DAccelerate_DIR=${PACKAGE}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  foreach(text IN LISTS ARGN)
    string(FIND "${output}" "${text}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "LibTorch ${version} ${flags}: no '${text}' in\n${output}")
    endif()
  endforeach()
  if(result EQUAL 0)
    message(FATAL_ERROR "LibTorch ${version} ${flags} isn't refused")
  endif()
  file(REMOVE_RECURSE ${FOLDER})
endfunction()

expect(1.2.3 "" "was built with LibTorch ${VERSION}, and this project finds 1.2.3" "CMAKE_PREFIX_PATH")
expect(${VERSION} "-D_GLIBCXX_USE_CXX11_ABI=0" "_GLIBCXX_USE_CXX11_ABI=0" "the same std::string")
