//===- StatusLine.h - What is being done, on a terminal -------------------===//
#ifndef ACCELERATE_MIGRATE_REPORT_STATUSLINE_H
#define ACCELERATE_MIGRATE_REPORT_STATUSLINE_H

#include "llvm/Support/raw_ostream.h"

namespace migrate {

/// One line that is written over and over, as ninja's: `[3/40] reading src/train.cpp`. Only on a terminal.
class StatusLine {
public:
  StatusLine(llvm::raw_ostream &Err, bool Wanted) : Err(Err), On(Wanted && Err.is_displayed()) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine &) = delete;
  StatusLine &operator=(const StatusLine &) = delete;

  void show(size_t Done, size_t Total, const llvm::Twine &What) {
    if (!On)
      return;
    Err << "\r[" << Done << "/" << Total << "] " << What << "\x1b[K";
    Err.flush();
    Shown = true;
  }
  void clear() {
    if (Shown)
      Err << "\r\x1b[K";
    Shown = false;
  }

private:
  llvm::raw_ostream &Err;
  bool On, Shown = false;
};

} // namespace migrate

#endif
