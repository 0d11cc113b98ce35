#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>

#include "modules/attention/slots.h"
#include "modules/base/atomic_file.h"
#include "modules/base/nearest.h"
#include "src/cli/command.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

/// What a new entry of a slot must be told beside its files.
struct SlotOfHeads {
  const Catalogue& (*catalogue)();
  std::string traits;  // of its registry line
  std::string row;     // of the table of tests/modules/conformance_test.cpp, with my_<slot> for its name
};

const std::map<std::string, SlotOfHeads>& slots_of_heads() {
  static const std::map<std::string, SlotOfHeads> all{
      {"gate", {gate_catalogue, "", R"(  add("gate.my_gate", "", [](A& a) { a.gates.items = {gate("my_gate")}; });)"}},
      {"mix", {mix_catalogue, "", R"(  add("mix.my_mix", "", [](A& a) { a.mix.choose("my_mix"); });)"}},
      {"position",
       {position_catalogue, R"(, "", Traits{.self_alone = true, .needs_heads = true})",
        R"(  add("position.my_position", "", [](A& a) { a.position.choose("my_position"); },
      {.cross = no_positions_between, .fused_training = "the kernel sends no gradient through a bias"});)"}}};
  return all;
}

/// The checkout that the program is used in.
fs::path checkout() {
  for (auto folder = fs::current_path();; folder = folder.parent_path()) {
    if (fs::exists(folder / "modules/attention/gate/registry.cpp") && fs::exists(folder / "tools/templates"))
      return folder;
    if (folder == folder.root_path())
      throw UsageError(
          "new: expected to be called within a checkout of headlab (a folder with modules/ and tools/templates/), "
          "since it writes sources; got " +
          fs::current_path().string());
  }
}

/// "my_gate" as a type: "MyGate".
std::string type_name(const std::string& name) {
  std::string type;
  bool begins = true;
  for (const char letter : name) {
    if (letter != '_') type += static_cast<char>(begins ? std::toupper(static_cast<unsigned char>(letter)) : letter);
    begins = letter == '_';
  }
  return type;
}

std::string with_names(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// Puts `what` at the place where `mark` was found; throws FileError where it was not.
void put_in(std::string& text, std::size_t at, const std::string& what, const fs::path& file, const std::string& mark) {
  if (at == std::string::npos)
    throw FileError(file.string() + ": expected " + in_quotes(mark) + " in it, to know where the new entry goes");
  text.insert(at, what);
}

}  // namespace

std::function<int()> add_new(CLI::App& command) {
  struct Wanted {
    std::string what, name, slot = "gate";
  };
  auto wanted = std::make_shared<Wanted>();
  command.add_option("what", wanted->what, "what is made: head")->required()->check(CLI::IsMember({"head"}));
  command.add_option("name", wanted->name, "its name in specs: letters, digits and _")->required();
  std::vector<std::string> slots;
  for (const auto& [slot, unused] : slots_of_heads()) slots.push_back(slot);
  command.add_option("--slot", wanted->slot, "the slot of an attention that it is an entry of")
      ->capture_default_str()
      ->check(CLI::IsMember(slots));
  return [wanted] {
    const auto& w = *wanted;
    const auto& slot = slots_of_heads().at(w.slot);
    const bool letters = std::all_of(w.name.begin(), w.name.end(),
                                     [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
    if (!letters || w.name.empty() || !std::islower(static_cast<unsigned char>(w.name[0])))
      throw UsageError("new: name: expected small letters, digits and _, beginning with a letter, got " +
                       in_quotes(w.name));
    if (slot.catalogue().find(w.name))
      throw UsageError("new: name: the slot " + w.slot + " has an entry " + in_quotes(w.name) + " already");
    const auto root = checkout();
    const auto pattern = "my_" + w.slot, type = type_name(w.name);
    const auto home = "modules/attention/" + w.slot + "/";
    const auto filled = [&](const std::string& file) {
      auto text = read_file(root / "tools/templates" / w.slot / file);
      text = with_names(text, "tools/templates/" + w.slot + "/", home);
      return with_names(with_names(text, type_name(pattern), type), pattern, w.name);
    };
    std::map<fs::path, std::string> written{{home + w.name + ".h", filled(pattern + ".h")},
                                            {home + w.name + ".cpp", filled(pattern + ".cpp")},
                                            {"tests/" + home + w.name + "_test.cpp", filled(pattern + "_test.cpp")},
                                            {"experiments/" + w.name + ".json", filled(pattern + ".json")}};
    for (const auto& [file, unused] : written)
      if (fs::exists(root / file)) throw UsageError("new: " + file.string() + " is there already; choose another name");

    const fs::path registry = home + "registry.cpp", table = "tests/modules/conformance_test.cpp";
    auto entries = read_file(root / registry);
    put_in(entries, entries.find("#include"), "#include \"" + home + w.name + ".h\"\n", registry, "#include");
    const std::string last = ";\n  return registry;";
    put_in(entries, entries.find(last),
           "\n          .entry<" + type + ", " + type + "Options>(\"" + w.name + "\", \"say in a line what it does\"" +
               slot.traits + ")",
           registry, last);
    auto rows = read_file(root / table);
    const std::string end = "  return rows;\n}\n\nstd::vector<Row> model_rows()";
    put_in(rows, rows.find(end), with_names(slot.row, pattern, w.name) + "\n", table, end);
    written[registry] = entries;
    written[table] = rows;
    for (const auto& [file, text] : written) {
      fs::create_directories((root / file).parent_path());
      write_file_atomically(root / file, text);
      std::printf("%s\n", file.c_str());
    }
    std::printf(
        "\nIts tests, with those that every entry passes:  tools/test \"[%s],[conformance]\"\nIts experiment:  "
        "tools/headlab run experiments/%s.json\n",
        w.name.c_str(), w.name.c_str());
    return 0;
  };
}

}  // namespace headlab
