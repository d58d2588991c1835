/* The program for what Tamarack has and promises beyond LevelDB. */

#include "check.h"

void lifetime_suite(void);
void limit_suite(void);
void damage_suite(void);
void setting_suite(void);
void read_suite(void);
void durability_suite(void);
void space_suite(void);
void copy_suite(void);
void sharing_suite(void);

int main(int argc, char** argv) {
  static const struct suite suites[] = {
      {"lifetime", lifetime_suite}, {"limit", limit_suite}, {"damage", damage_suite},
      {"setting", setting_suite},   {"read", read_suite},   {"durability", durability_suite},
      {"space", space_suite},       {"copy", copy_suite},   {"sharing", sharing_suite},
  };
  return run_suites(argc, argv, suites, sizeof suites / sizeof *suites);
}
