// The program for what is LevelDB's: passes with Tamarack and with LevelDB.

#include "check.h"

void value_suite();
void layout_suite();
void order_suite();
void filter_suite();
void cache_suite();
void batch_suite();
void database_suite();
void iterator_suite();
void derived_suite();
void env_suite();
void management_suite();
void thread_suite();

int main(int argc, char** argv) {
  static const check::Suite suites[] = {
      {"value", value_suite},       {"layout", layout_suite},         {"order", order_suite},
      {"filter", filter_suite},     {"cache", cache_suite},           {"batch", batch_suite},
      {"database", database_suite}, {"iterator", iterator_suite},     {"derived", derived_suite},
      {"env", env_suite},           {"management", management_suite}, {"thread", thread_suite},
  };
  return check::Run(argc, argv, suites, sizeof suites / sizeof *suites);
}
