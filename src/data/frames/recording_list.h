#pragma once

#include <map>

#include "src/data/labelled/records.h"
#include "src/data/labelled/split_files.h"

namespace headlab {

/// A file, and what is known of it by name: what is said, who speaks, of which part it is.
struct Recording {
  std::string path;
  Record known;
};

/// Which recordings there are: the options of each list derive from it.
struct RecordingList {
  virtual ~RecordingList() = default;
  /// The recordings of train, valid and test, none of them empty. Throws Error.
  virtual std::map<std::string, std::vector<Recording>> list(const std::string& spec_folder) const = 0;
  /// What will be known of each recording; empty: only the files tell.
  virtual std::vector<std::string> knows() const { return {}; }
};

const Catalogue& recording_list_catalogue();

/// Tables of recordings, one a row: columns between tabs with a header, or JSON lines (*.jsonl). The names of
/// recordings are relative to the folder of their table.
struct ManifestOptions : Described<ManifestOptions>, SplitFiles, RecordingList {
  std::string file = "file", folder, part;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  std::map<std::string, std::vector<Recording>> list(const std::string& spec_folder) const override;
};

/// Recordings whose names tell what is known of them: corpus/{text}_{speaker}_{take}.wav, where no part holds a sign
/// that ends one (_ and .). Files of the folder that end otherwise are passed over; one that ends so and has another
/// name is an error. A value of `by` that no part has leaves a recording out.
struct FileNamesOptions : Described<FileNamesOptions>, RecordingList {
  std::string names, by;
  std::vector<std::string> train, valid, test;
  void describe(Fields& fields) override;
  void rules(Problems& problems) const override;
  std::map<std::string, std::vector<Recording>> list(const std::string& spec_folder) const override;
  std::vector<std::string> knows() const override;
};

}  // namespace headlab
