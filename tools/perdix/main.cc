// perdix: the command-line tool.
#include <signal.h>

#include "perdix/command_line.h"

int main(int argc, char** argv) {
  // The reader of the output may stop early, which write() reports.
  ::signal(SIGPIPE, SIG_IGN);
  return perdix::tool::run_command_line(argc, argv);
}
