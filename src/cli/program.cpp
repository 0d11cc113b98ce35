#include "src/cli/program.h"

#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>

#include "modules/base/error.h"
#include "modules/base/version.h"
#include "src/cli/command.h"

namespace headlab {

int program(int argc, char** argv) {
  // Large tensors come and go each step: kept by the allocator they are not mapped and cleared anew each time.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2147483647);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit (ulimit -f) is an error of the write, with a message
  CLI::App app{"headlab: train, ablate, prune, analyse and export the attention heads of Transformers", "headlab"};
  app.set_version_flag("--version", std::string("headlab ") + version);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  int code = 0;
  for (const auto& command : commands()) {
    auto* sub = app.add_subcommand(command.name, command.summary);
    auto run = command.add(*sub);
    std::string examples = "\nExamples:\n  ";
    for (const char* at = command.examples; *at; ++at)
      examples += *at == '\n' ? std::string("\n  ") : std::string(1, *at);
    sub->footer(examples);
    sub->callback([run, &code] { code = run(); });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& wrong) {
    std::fprintf(stderr, "headlab: %s\nsee: headlab --help\n", wrong.what());
    return 2;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headlab: %s\n", error.what());
    return 1;
  }
  // A translation that ends on a full disk must not pass for a whole one.
  std::cout.flush();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) || !std::cout) {
    std::fprintf(stderr, "headlab: standard output could not be written to its end; is the disk full?\n");
    return 1;
  }
  return code;
}

}  // namespace headlab
