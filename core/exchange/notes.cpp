#include "exchange/notes.h"

namespace cleave::exchange {

void writeNotes(JsonWriter& json, const std::vector<Note>& notes) {
  json.key("notes").beginArray();
  for (const Note& note : notes) {
    json.beginObject();
    json.key("layer").value(note.layer);
    json.key("strategy").value(note.strategy);
    json.key("why").value(note.why);
    json.key("instead").value(note.instead);
    json.endObject();
  }
  json.endArray();
}

std::vector<std::string> sentences(const std::vector<Note>& notes) {
  std::vector<std::string> texts;
  for (const Note& note : notes) texts.push_back(toText(note));
  return texts;
}

}  // namespace cleave::exchange
