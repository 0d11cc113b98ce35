#pragma once

#include <string>

namespace headlab {

/// Where a spec's data file lies: an absolute name as it is; else below the folder of the spec, else below the folder
/// that the environment variable HEADLAB_DATA names. Throws FileError where there is no such file:
/// `no such file: data/train.en (looked in experiments/ and in HEADLAB_DATA)`.
std::string resolve_data_path(const std::string& name, const std::string& spec_folder);
/// The same of a folder: `no such folder: ...`.
std::string resolve_data_folder(const std::string& name, const std::string& spec_folder);

}  // namespace headlab
