// A leveldb::Logger that writes lines into a file. Included by posix_env.h alone.

#ifndef TAMARACK_LEVELDB_POSIX_LOGGER_H
#define TAMARACK_LEVELDB_POSIX_LOGGER_H

#include <sys/time.h>
#include <time.h>

#include <cstdarg>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

namespace tamarack {
namespace leveldb_v1 {

// A line begins with the local time and the thread. Each is given to the operating system at once, and whole.
class PosixLogger final : public leveldb::Logger {
 public:
  // Takes the file over.
  explicit PosixLogger(std::FILE* file) : file_(file) {}
  ~PosixLogger() override { std::fclose(file_); }

  void Logv(const char* format, std::va_list arguments) override {
    std::string line = Beginning() + Text(format, arguments);
    if (line.back() != '\n') line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), file_);
    std::fflush(file_);
  }

 private:
  static std::string Beginning() {
    struct ::timeval now;
    ::gettimeofday(&now, nullptr);
    const ::time_t second = now.tv_sec;
    struct ::tm local;
    ::localtime_r(&second, &local);
    char date[32];
    const size_t length = std::strftime(date, sizeof date, "%Y/%m/%d-%H:%M:%S", &local);
    char fraction[16];
    std::snprintf(fraction, sizeof fraction, ".%06ld ", static_cast<long>(now.tv_usec));
    std::ostringstream thread;
    thread << std::this_thread::get_id() << ' ';
    return std::string(date, length) + fraction + thread.str();
  }

  static std::string Text(const char* format, std::va_list arguments) {
    char shorter[512];
    std::va_list again;
    va_copy(again, arguments);
    const int length = std::vsnprintf(shorter, sizeof shorter, format, arguments);
    std::string text;
    if (length >= 0 && static_cast<size_t>(length) < sizeof shorter) {
      text.assign(shorter, static_cast<size_t>(length));
    } else if (length >= 0) {
      text.resize(static_cast<size_t>(length) + 1);
      std::vsnprintf(&text[0], text.size(), format, again);
      text.pop_back();
    }
    va_end(again);
    return text;
  }

  std::FILE* const file_;
};

}  // namespace leveldb_v1
}  // namespace tamarack

#endif
