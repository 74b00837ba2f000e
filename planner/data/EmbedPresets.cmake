# monarch_embed_presets(OUTPUT file.cpp FILES a.json b.json ...
#                       [TABLE function HEADER header])
# Writes the table that planner/cluster/PresetData.h declares, or, with TABLE, a
# function from a file's name to its text. Editing a file configures again, so
# the library never holds an old figure.
function(monarch_embed_presets)
  cmake_parse_arguments(arg "" "OUTPUT;TABLE;HEADER" "FILES" ${ARGN})
  set(entries "")
  foreach(file IN LISTS arg_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" content)
    get_filename_component(name "${file}" NAME_WLE)
    if(arg_TABLE)
      string(APPEND entries
        "  if (name == \"${name}\")\n    return R\"preset(${content})preset\";\n")
    else()
      string(APPEND entries "    {\"${name}\", R\"preset(${content})preset\"},\n")
    endif()
  endforeach()
  if(arg_TABLE)
    file(CONFIGURE OUTPUT "${arg_OUTPUT}" CONTENT
"// Generated from data files.
#include \"@arg_HEADER@\"

namespace monarch::planner {

std::string_view @arg_TABLE@(std::string_view name) {
@entries@  return {};
}

} // namespace monarch::planner
" @ONLY)
    return()
  endif()
  file(CONFIGURE OUTPUT "${arg_OUTPUT}" CONTENT
"// Generated from planner/data/clusters.
#include \"planner/cluster/PresetData.h\"

namespace monarch::planner {

static constexpr PresetData Presets[] = {
@entries@};

std::span<const PresetData> presetData() { return Presets; }

} // namespace monarch::planner
" @ONLY)
endfunction()
