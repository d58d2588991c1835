// The program for what is Tamarack's: where it goes beyond LevelDB, and where it does otherwise.

#include "check.h"

void default_suite();
void option_suite();
void told_suite();
void unknown_suite();
void limit_suite();
void beyond_suite();
void lifetime_suite();
void damage_suite();

int main(int argc, char** argv) {
  static const check::Suite suites[] = {
      {"default", default_suite},   {"option", option_suite}, {"told", told_suite},
      {"unknown", unknown_suite},   {"limit", limit_suite},   {"beyond", beyond_suite},
      {"lifetime", lifetime_suite}, {"damage", damage_suite},
  };
  return check::Run(argc, argv, suites, sizeof suites / sizeof *suites);
}
