/* The program for what is LevelDB's: passes with Tamarack and with LevelDB. */

#include "check.h"

void database_suite(void);
void batch_suite(void);
void iterator_suite(void);
void snapshot_suite(void);
void comparator_suite(void);
void option_suite(void);
void size_suite(void);
void management_suite(void);
void error_suite(void);
void thread_suite(void);

int main(int argc, char** argv) {
  static const struct suite suites[] = {
      {"database", database_suite}, {"batch", batch_suite},           {"iterator", iterator_suite},
      {"snapshot", snapshot_suite}, {"comparator", comparator_suite}, {"option", option_suite},
      {"size", size_suite},         {"management", management_suite}, {"error", error_suite},
      {"thread", thread_suite},
  };
  return run_suites(argc, argv, suites, sizeof suites / sizeof *suites);
}
