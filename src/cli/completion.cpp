#include <cstdio>

#include "src/cli/command.h"
#include "src/cli/lookup.h"

namespace headlab {
namespace {

/// One flag or option of a command.
struct CommandFlag {
  std::string name, summary;  // "out"
  bool takes_value = false;
  std::vector<std::string> values;  // that it takes, where these are known
};

struct CommandWords {
  std::string name, summary;
  std::vector<CommandFlag> flags;
  std::vector<std::string> words;   // that its arguments can be, where these are known; else they are files
  std::vector<CommandWords> inner;  // commands of its own: generate, bench
};

/// "{train,attention}" of an option's check, taken apart.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> values;
  const auto text = option.get_type_name();
  const auto open = text.find('{'), close = text.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return values;
  std::string value;
  for (auto i = open + 1; i <= close; ++i) {
    if (text[i] != ',' && i != close)
      value += text[i];
    else
      values.push_back(std::exchange(value, ""));
  }
  return values;
}

CommandWords command_words(const CLI::App& command) {
  CommandWords made{command.get_name(), command.get_description(), {}, {}, {}};
  for (const auto* option : command.get_options()) {
    if (option->get_positional()) {
      const auto values = choices_of(*option);
      made.words.insert(made.words.end(), values.begin(), values.end());
    }
    for (const auto& name : option->get_lnames())
      made.flags.push_back(
          {name, option->get_description(), option->get_items_expected_max() > 0, choices_of(*option)});
  }
  for (const auto* inner : command.get_subcommands([](const CLI::App* one) { return one->get_name() != ""; }))
    made.inner.push_back(command_words(*inner));
  if (made.name == "list") made.words = names_that_list_knows();
  return made;
}

std::string in_words(const std::vector<std::string>& words, const std::string& between = " ") {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string flag_names(const CommandWords& command) {
  std::string text;
  for (const auto& flag : command.flags) text += (text.empty() ? "--" : " --") + flag.name;
  return text;
}

std::string command_names(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const auto& one : commands) names.push_back(one.name);
  return in_words(names);
}

/// In single quotes, for a shell.
std::string shell_quoted(const std::string& text, const std::string& also = "") {
  std::string made = "'";
  for (auto letter : text) {
    if (letter == '\'') made += "'\\'";
    if (also.find(letter) != std::string::npos) made += '\\';
    made += letter;
  }
  return made + "'";
}

std::string bash_case(const CommandWords& command) {
  std::string text;
  for (const auto& flag : command.flags)
    if (!flag.values.empty())
      text += "      --" + flag.name + ") words=" + shell_quoted(in_words(flag.values)) + "; flags= ;;\n";
  return text;
}

std::string bash(const CommandWords& program) {
  std::string text =
      "# headlab's completion for bash: eval \"$(headlab completion bash)\"\n"
      "_headlab() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= flags=\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
      "    words=" +
      shell_quoted(command_names(program.inner)) + " flags=" + shell_quoted(flag_names(program)) +
      "\n"
      "  else case ${COMP_WORDS[1]} in\n";
  for (const auto& command : program.inner) {
    const auto words = command.inner.empty() ? in_words(command.words) : command_names(command.inner);
    text +=
        "    " + command.name + ") words=" + shell_quoted(words) + " flags=" + shell_quoted(flag_names(command)) + "\n";
    if (!command.inner.empty()) {
      text += "      if [ \"$COMP_CWORD\" -gt 2 ]; then case ${COMP_WORDS[2]} in\n";
      for (const auto& inner : command.inner)
        text += "        " + inner.name + ") words=" + shell_quoted(in_words(inner.words)) +
                " flags=" + shell_quoted(flag_names(inner)) + " ;;\n";
      text += "      esac; fi\n";
    }
    std::string values = bash_case(command);
    for (const auto& inner : command.inner) values += bash_case(inner);
    if (!values.empty()) text += "      case $before in\n" + values + "      esac\n";
    text += "      ;;\n";
  }
  return text +
         "  esac; fi\n"
         "  case $current in\n"
         "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$current\")) ;;\n"
         "    *) if [ -n \"$words\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "       else compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$current\")); fi ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _headlab headlab tools/headlab\n";
}

std::string zsh_arguments(const CommandWords& command) {
  std::string text = "_arguments";
  for (const auto& flag : command.flags) {
    text += " \\\n        " + shell_quoted("--" + flag.name + "[" + flag.summary + "]", ":");
    if (flag.takes_value) {
      text.pop_back();
      text += ":value:" + (flag.values.empty() ? std::string("_files") : "(" + in_words(flag.values) + ")") + "'";
    }
  }
  return text + " \\\n        '*:argument:" + (command.words.empty() ? "_files" : "(" + in_words(command.words) + ")") +
         "'";
}

std::string zsh(const CommandWords& program) {
  std::string text =
      "#compdef headlab tools/headlab\n"
      "# headlab's completion for zsh: eval \"$(headlab completion zsh)\" after compinit, or a file _headlab on fpath\n"
      "_headlab() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const auto& command : program.inner) text += "    " + shell_quoted(command.name + ":" + command.summary) + "\n";
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
      "  case $words[2] in\n";
  for (const auto& command : program.inner) {
    text += "    " + command.name + ")\n";
    if (command.inner.empty()) {
      text += "      shift words; (( CURRENT-- ))\n      " + zsh_arguments(command) + " ;;\n";
      continue;
    }
    text += "      if (( CURRENT == 3 )); then compadd " + command_names(command.inner) +
            "; return; fi\n      case $words[3] in\n";
    for (const auto& inner : command.inner)
      text += "      " + inner.name + ") shift 2 words; (( CURRENT -= 2 ))\n        " + zsh_arguments(inner) + " ;;\n";
    text += "      esac ;;\n";
  }
  return text +
         "  esac\n}\nif [ \"$funcstack[1]\" = _headlab ]; then _headlab \"$@\"; else compdef _headlab headlab "
         "tools/headlab; fi\n";
}

void fish_flags(std::string& text, const CommandWords& command, const std::string& when) {
  for (const auto& flag : command.flags)
    text += "complete -c headlab -n " + shell_quoted(when) + " -l " + flag.name + (flag.takes_value ? " -r" : "") +
            (flag.values.empty() ? "" : " -f -a " + shell_quoted(in_words(flag.values))) + " -d " +
            shell_quoted(flag.summary) + "\n";
  if (!command.words.empty())
    text += "complete -c headlab -n " + shell_quoted(when) + " -f -a " + shell_quoted(in_words(command.words)) + "\n";
}

std::string fish(const CommandWords& program) {
  std::string text = "# headlab's completion for fish: headlab completion fish | source\n";
  for (const auto& command : program.inner)
    text += "complete -c headlab -n __fish_use_subcommand -f -a " + command.name + " -d " +
            shell_quoted(command.summary) + "\n";
  for (const auto& command : program.inner) {
    const auto seen = "__fish_seen_subcommand_from " + command.name;
    fish_flags(text, command, seen);
    if (command.inner.empty()) continue;
    const auto names = command_names(command.inner);
    for (const auto& inner : command.inner) {
      text += "complete -c headlab -n " + shell_quoted(seen + "; and not __fish_seen_subcommand_from " + names) +
              " -f -a " + inner.name + " -d " + shell_quoted(inner.summary) + "\n";
      fish_flags(text, inner, seen + "; and __fish_seen_subcommand_from " + inner.name);
    }
  }
  return text;
}

}  // namespace

std::function<int()> add_completion(CLI::App& command) {
  auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "whose completion is printed")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  const CLI::App* program = command.get_parent();
  return [shell, program] {
    const auto all = command_words(*program);
    std::fputs((*shell == "bash" ? bash(all) : *shell == "zsh" ? zsh(all) : fish(all)).c_str(), stdout);
    return 0;
  };
}

}  // namespace headlab
