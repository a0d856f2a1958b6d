#pragma once
/// A window and its session, created as in `main`. The session is destroyed last.
#include "views/window/main_window.h"

namespace cleave::views::testing {

struct OwnSession {
  Session own;
};

class SessionWindow : private OwnSession, public MainWindow {
 public:
  explicit SessionWindow(bool remembers = false) : MainWindow(own, remembers) {}
};

}  // namespace cleave::views::testing
