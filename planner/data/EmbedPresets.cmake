# monarch_embed_presets(OUTPUT file.cpp FILES a.json b.json ...)
# Writes the table that planner/cluster/PresetData.h declares. Editing a preset
# configures again, so the library never holds an old figure.
function(monarch_embed_presets)
  cmake_parse_arguments(arg "" "OUTPUT" "FILES" ${ARGN})
  set(entries "")
  foreach(file IN LISTS arg_FILES)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" content)
    get_filename_component(name "${file}" NAME_WLE)
    string(APPEND entries "    {\"${name}\", R\"preset(${content})preset\"},\n")
  endforeach()
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
