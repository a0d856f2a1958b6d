#include "cli/commands.h"
#include "cli/what_if.h"
#include "settings/option_types.h"

#include <functional>

namespace cleave::cli {
namespace {

struct Question {
  PlanFlags flags;
  PlanSettings asked;  ///< read from `flags` before the answer
  std::string json, sizes;
  std::vector<std::string> sides;
  std::size_t count = 10;
};
using Answer = std::function<Result<int>(const Question&, const Progress&)>;

Result<int> ask(Question& question, const Answer& answer) {
  const Progress progress = consoleProgress();
  CLEAVE_TRY(question.asked, question.flags.read());
  question.flags.hint(question.asked);
  CLEAVE_TRY_VOID(resolveModel(question.asked.model, hub::Wanted::Config, progress));
  CLEAVE_TRY_VOID(refuseOverwriting({{"--json", question.json}}, question.asked.filesRead()));
  return answer(question, progress);
}

/// BadUsage if --engine names another engine than the one that `command` uses.
Result<void> checkEngine(const Question& question, std::string_view command) {
  const solve::Engine engine = question.asked.plan.engine;
  if (!question.flags.isGiven("engine") || engine == solve::Engine::Optimal) return {};
  return fail(ErrorCode::BadUsage, "--engine is {}, but {} uses the engine optimal. Leave --engine out.",
              solve::toText(engine), command);
}

struct Added {
  CLI::App* command;
  std::shared_ptr<Question> question;
};
Added addQuestion(CLI::App& app, Chosen& chosen, const std::string& name, const std::string& description,
                  const Answer& answer) {
  auto question = std::make_shared<Question>();
  CLI::App* command = app.add_subcommand(name, description);
  question->flags.addTo(*command);
  command->add_option("--json", question->json, "Write the answer as JSON to a file, or - for stdout")
      ->type_name(option_types::kFileOrDash);
  command->callback([question, answer, &chosen] {
    const auto result = ask(*question, answer);
    chosen.exitCode = result ? *result : report(result.error());
  });
  return {command, question};
}

void addWorldSizesCommand(CLI::App& app, Chosen& chosen) {
  const auto [command, question] = addQuestion(
      app, chosen, "world-sizes", "List the world sizes that work, and why the others do not",
      [](const Question& q, const Progress& progress) -> Result<int> {
        if (q.flags.isGiven("ranks"))
          return fail(ErrorCode::BadUsage, "--ranks is {}, but world-sizes tries several: write them as --sizes.",
                      q.asked.plan.ranks);
        return showWorldSizes(q.asked, q.sizes, q.json, progress);
      });
  PlanFlags::hide(*command, {"--ranks"});
  command->add_option("--sizes", question->sizes, "World sizes to try: numbers and ranges, such as 1-8,16,32")
      ->default_str(kListedSizes);
}

void addBestCommand(CLI::App& app, Chosen& chosen) {
  const auto [command, question] = addQuestion(app, chosen, "best", "List the best plan and the next best ones",
                                               [](const Question& q, const Progress& progress) -> Result<int> {
                                                 CLEAVE_TRY_VOID(checkEngine(q, "best"));
                                                 return showBest(q.asked, q.count, q.json, progress);
                                               });
  command
      ->add_option("--count", question->count,
                   "Number of plans, each with another strategy of a layer or another redistribution")
      ->check(CLI::Range(std::size_t{1}, kMostBestPlans))
      ->capture_default_str();
}

void addCompareCommand(CLI::App& app, Chosen& chosen) {
  const auto [command, question] = addQuestion(
      app, chosen, "compare", "Compare plans of a model, layer by layer",
      [](const Question& q, const Progress& progress) { return comparePlans(q.asked, q.sides, q.json, progress); });
  command
      ->add_option(
          "SIDES", question->sides,
          "Two or more engines or plan files, such as reference,optimal; the others are compared with the first")
      ->delimiter(',')
      ->required();
}

}  // namespace

void addQuestionCommands(CLI::App& app, Chosen& chosen) {
  addQuestion(app, chosen, "preflight", "List what no plan of a model can split, without a search",
              [](const Question& q, const Progress& progress) { return showPreflight(q.asked, q.json, progress); });
  addWorldSizesCommand(app, chosen);
  addQuestion(app, chosen, "pareto", "List the plans that no other plan beats in both time and memory",
              [](const Question& q, const Progress& progress) -> Result<int> {
                CLEAVE_TRY_VOID(checkEngine(q, "pareto"));
                return showFront(q.asked, q.json, progress);
              });
  addBestCommand(app, chosen);
  addCompareCommand(app, chosen);
}

}  // namespace cleave::cli
