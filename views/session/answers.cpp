#include "views/session/answers.h"

#include <algorithm>
#include <numeric>

#include "pipeline/solve/over_budget.h"
#include "pipeline/solve/solve.h"
#include "views/base/text.h"

namespace cleave::views {

namespace {
constexpr int kMostPredictedRanks = 64;  // maximum rank count of predictions
const QString kAnalysisTag = QStringLiteral("analysis"), kWhyNotTag = QStringLiteral("why-not"),
              kRemediesTag = QStringLiteral("remedies"), kPreflightTag = QStringLiteral("preflight"),
              kWorldSizesTag = QStringLiteral("world-sizes"), kFrontTag = QStringLiteral("front"),
              kHeatTag = QStringLiteral("heat");

/// Keeps the value of a result, or the sentence of its error.
template <class Value, class Kept>
void keep(Result<Value> result, Kept& value, QString& failure) {
  if (result)
    value = std::move(*result);
  else
    failure = toQ(result.error().message);
}

const QString& tagOf(AnswerKind kind) {
  switch (kind) {
    case AnswerKind::Analysis: return kAnalysisTag;
    case AnswerKind::WhyNot: return kWhyNotTag;
    case AnswerKind::Remedies: return kRemediesTag;
    case AnswerKind::Preflight: return kPreflightTag;
    case AnswerKind::WorldSizes: return kWorldSizesTag;
    case AnswerKind::Front: return kFrontTag;
    case AnswerKind::Heat: break;
  }
  return kHeatTag;
}
}  // namespace

/// The subject of a question, shared with the worker.
struct Answers::Subject {
  std::shared_ptr<const pipeline::Solved> solved;
  bool hasSolution() const { return solved && solved->result.solution; }
  const solve::Problem& problem() const { return *solved->problem; }
  const solve::Solution& solution() const { return *solved->result.solution; }
  const solve::Optimum* optimum() const { return solved->result.optimum.get(); }
};

Answers::Answers(QObject* parent) : QObject(parent), m_quick(this), m_surveys(this) {
  for (Worker* worker : {&m_quick, &m_surveys}) {
    connect(worker, &Worker::started, this, [this](const QString&, const QString& title) {
      if (!title.isEmpty()) emit surveyStarted(title);
    });
    connect(worker, &Worker::finished, this, [this] {
      if (isIdle()) emit surveyEnded();
    });
  }
  connect(
      &m_surveys, &Worker::progressed, this,
      [this](const QString&, const QString& stage, qint64 done, qint64 total) { emit progressed(stage, done, total); });
}

Answers::~Answers() = default;

void Answers::close() {
  m_quick.close();
  m_surveys.close();
}

void Answers::join(Worker::Clock::time_point until) {
  m_quick.join(until);
  m_surveys.join(until);
}

void Answers::cancel() {
  m_quick.cancelAll();
  m_surveys.cancelAll();
}

bool Answers::isPending(AnswerKind kind) const {
  const QString& tag = tagOf(kind);
  return m_quick.isBusy(tag) || m_surveys.isBusy(tag);
}

bool Answers::isIdle() const { return !m_quick.isBusy() && !m_surveys.isBusy(); }

Answers::Subject Answers::subject() const { return {m_solved}; }

void Answers::setModel(std::shared_ptr<const pipeline::Model> model, const spec::PlanSpec& spec) {
  cancel();
  m_model = std::move(model);
  m_spec = spec;
  m_preflight.reset();
  m_worldSizes.reset();
  setSolved(nullptr);
  emit preflightChanged();
  postPreflight();
}

void Answers::setSolved(std::shared_ptr<const pipeline::Solved> solved) {
  if (m_solved == solved && solved) return;
  m_solved = std::move(solved);
  forgetSolution();
}

void Answers::forgetSolution() {
  for (const QString& tag : {kAnalysisTag, kWhyNotTag}) m_quick.cancel(tag);
  for (const QString& tag : {kRemediesTag, kFrontTag}) m_surveys.cancel(tag);
  m_analysis.reset();
  m_whyNot.reset();
  m_remedies.reset();
  m_remediesAbout.reset();
  m_searchRemedies.reset();
  m_front.reset();
  m_heat.reset();
  emit analysisChanged();
  emit whyNotChanged();
  emit remediesChanged();
  emit frontChanged();
  emit heatChanged();
}

void Answers::setSpec(const spec::PlanSpec& spec) {
  spec::PlanSpec before = m_spec;
  before.ranks = spec.ranks;
  if (!spec::isSameProblem(before, spec) && (m_worldSizes || m_surveys.isBusy(kWorldSizesTag))) {
    m_surveys.cancel(kWorldSizesTag);
    m_worldSizes.reset();
    emit preflightChanged();
  }
  m_spec = spec;
  postPreflight();
}

void Answers::analyse(NodeId node, ValueId value) {
  const bool isPossible = value.isValid() && m_solved && m_solved->result.solution &&
                          value.index() < m_solved->result.solution->placements.size();
  if (!isPossible) {
    // Also replaces a question that is still running.
    if (m_quick.isBusy(kAnalysisTag)) m_quick.post(kAnalysisTag, {}, [](const Progress&) { return nullptr; });
    if (std::exchange(m_analysis, nullptr)) emit analysisChanged();
    return;
  }
  m_quick.post(kAnalysisTag, {}, [=, this, about = subject()](const Progress& progress) -> Worker::Completion {
    auto analysis = std::make_shared<Analysis>();
    analysis->value = value;
    analysis->node = node;
    analysis->why = solve::why(about.problem(), about.solution(), about.solved->result.engine, value);
    if (about.optimum()) {
      if (auto regrets = about.optimum()->regrets(value, progress)) analysis->regrets = std::move(*regrets);
    }
    return [this, about, analysis] {
      if (about.solved != m_solved) return;
      m_analysis = analysis;
      emit analysisChanged();
    };
  });
}

void Answers::askWhyNot(ValueId value, const rules::Placement& placement) {
  if (!m_model || !value.isValid() || value.index() >= m_model->aten->values.size()) return;
  const graph::Value& asked = m_model->aten->value(value);
  WhyNotReply question{value, asked.producer, placement, {}, {}, {}, {}};
  question.question = QStringLiteral("Why is %1 not %2?").arg(toQ(asked.name), toQ(placement.text()));
  postWhyNot(std::move(question));
}

void Answers::askWhyNot(NodeId layer, rules::Strategy strategy) {
  if (!m_model || !layer.isValid() || layer.index() >= m_model->aten->nodes.size()) return;
  const graph::Graph& graph = *m_model->aten;
  WhyNotReply question{graph.node(layer).results.front(), layer, {}, strategy, {}, {}, {}};
  question.question =
      QStringLiteral("Why is %1 not %2?").arg(toQ(graph::layerName(graph, layer)), toQ(rules::toText(strategy)));
  postWhyNot(std::move(question));
}

void Answers::postWhyNot(WhyNotReply question) {
  if (!m_solved || !m_solved->result.solution) {
    question.failure =
        m_solved
            ? QStringLiteral("The search ended without a plan. The conflict card shows the reason and the remedies.")
            : QStringLiteral("There is no plan yet. Solve the model first.");
    m_whyNot = std::make_shared<const WhyNotReply>(std::move(question));
    return void(emit whyNotChanged());
  }
  m_whyNot = std::make_shared<const WhyNotReply>(question);
  m_quick.post(kWhyNotTag, question.question,
               [=, this, about = subject()](const Progress& progress) -> Worker::Completion {
                 const solve::Engine engine = about.solved->spec.engine;
                 auto answer = question.strategy ? solve::whyNot(about.problem(), about.solution(), engine,
                                                                 question.node, *question.strategy, progress)
                                                 : solve::whyNot(about.problem(), about.solution(), engine,
                                                                 question.value, *question.placement, progress);
                 auto reply = std::make_shared<WhyNotReply>(question);
                 keep(std::move(answer), reply->answer, reply->failure);
                 return [this, about, reply] {
                   if (about.solved != m_solved) return;
                   m_whyNot = reply;
                   emit whyNotChanged();
                 };
               });
  emit whyNotChanged();
}

void Answers::seekRemedies(std::optional<solve::ConflictCard> card) {
  const StepId about = card ? card->step : kNoStep;
  if (!m_solved || m_remediesAbout == about) return;
  m_remediesAbout = about;
  if (!card && m_searchRemedies) {
    m_surveys.cancel(kRemediesTag);
    m_remedies = m_searchRemedies;
    return void(emit remediesChanged());
  }
  m_remedies.reset();
  m_surveys.post(kRemediesTag, {},
                 [this, search = subject(), model = m_model, card](const Progress& progress) -> Worker::Completion {
                   auto found = solve::remediesFor(search.problem(), search.solved->result, search.solved->spec.engine,
                                                   card ? &*card : nullptr, progress);
                   auto remedies = std::make_shared<Remedies>();
                   if (card) remedies->conflict = card->node;
                   keep(std::move(found), remedies->offers, remedies->failure);
                   if (model && pipeline::isOverBudget(search.solved->result))
                     if (auto fits = pipeline::whatFits(*model, *search.solved, progress))
                       remedies->fits = std::move(*fits);
                   return [=, this, isWhole = !card, wasStopped = progress.cancelled()] {
                     if (search.solved != m_solved) return;
                     if (wasStopped) {
                       m_remediesAbout.reset();
                       return void(emit remediesChanged());
                     }
                     m_remedies = remedies;
                     if (isWhole) m_searchRemedies = remedies;
                     emit remediesChanged();
                   };
                 });
  emit remediesChanged();
}

void Answers::postPreflight() {
  // An opened trace has only its graph, which is all that the pre-flight needs.
  if (!m_model) return;
  m_quick.post(kPreflightTag, {}, [this, model = m_model, spec = m_spec](const Progress&) -> Worker::Completion {
    const auto problem = pipeline::problemOf(*model, spec);
    if (!problem) return {};
    auto found = std::make_shared<const plan::Preflight>(plan::preflight(**problem));
    return [this, model, found] {
      if (model != m_model) return;
      m_preflight = found;
      emit preflightChanged();
    };
  });
}

void Answers::computeWorldSizes() {
  if (!m_model) return;
  m_worldSizes.reset();
  m_surveys.post(kWorldSizesTag, QStringLiteral("Solving for 1 to %1 ranks").arg(kMostPredictedRanks),
                 [this, model = m_model, spec = m_spec](const Progress& progress) -> Worker::Completion {
                   std::vector<int> ranks(kMostPredictedRanks);
                   std::iota(ranks.begin(), ranks.end(), 1);
                   auto sizes = std::make_shared<WorldSizes>();
                   const auto problem = pipeline::problemOf(*model, spec);
                   // The plan's engine: another one would count other layers and bytes than the plan does.
                   if (problem) sizes->rows = plan::worldSizes(**problem, spec.engine, ranks, progress);
                   sizes->isComplete = sizes->rows.size() == ranks.size();
                   return [this, model, spec, sizes] {
                     spec::PlanSpec now = m_spec;
                     now.ranks = spec.ranks;
                     if (model != m_model || !spec::isSameProblem(now, spec)) return;
                     m_worldSizes = sizes;
                     emit preflightChanged();
                   };
                 });
  emit preflightChanged();
}

void Answers::computeFront() {
  if (!m_solved) return;
  const Subject about = subject();
  if (!about.optimum()) {
    auto none = std::make_shared<Front>();
    none->failure =
        QStringLiteral("The front of time against memory needs the engine optimal. Choose it and solve again.");
    m_front = std::move(none);
    return void(emit frontChanged());
  }
  m_front.reset();
  m_surveys.post(kFrontTag, QStringLiteral("Computing the front of time against memory"),
                 [this, about](const Progress& progress) -> Worker::Completion {
                   auto front = std::make_shared<Front>();
                   keep(about.optimum()->front(progress), front->front, front->failure);
                   return [this, about, front] {
                     if (about.solved != m_solved) return;
                     m_front = front;
                     emit frontChanged();
                   };
                 });
  emit frontChanged();
}

void Answers::computeHeat() {
  const Subject about = subject();
  if (!about.hasSolution() || m_heat || m_quick.isBusy(kHeatTag)) return;
  m_quick.post(kHeatTag, {}, [this, about](const Progress& progress) -> Worker::Completion {
    auto heat = std::make_shared<Heat>();
    const solve::Variables variables(about.problem());
    heat->costs = solve::CostModel(about.problem(), variables).byNode(about.solution());
    if (about.optimum()) {
      std::vector<NodeId> all;
      for (const NodeId node : idRange<NodeId>(about.problem().graph->nodes.size())) all.push_back(node);
      heat->smallestRegrets = about.optimum()->smallestRegrets(all, progress);
      for (solve::SmallestRegret& regret : heat->smallestRegrets)
        regret.extra = regret.extraOver(about.optimum()->fastest(), about.optimum()->cost());
      if (progress.cancelled()) return {};
    }
    return [this, about, heat] {
      if (about.solved != m_solved) return computeHeat();
      m_heat = heat;
      emit heatChanged();
    };
  });
}

}  // namespace cleave::views
