#include "views/base/theme.h"

#include "solve/problem/strategy_text.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cleave::views {
namespace {

constexpr int kFaint = 48;  ///< alpha of the pattern for replicated tensors

QColor rgb(QRgb value) { return QColor(value); }

}  // namespace

Tint tintOf(const MaybePlacement& placement, int ranks) {
  if (!placement) return Tint::Unassigned;
  if (placement->isReplicated() || (ranks > 0 && placement->isReplicatedOn(ranks))) return Tint::Replicated;
  return static_cast<Tint>(std::min(placement->firstDim(), static_cast<int>(Tint::Dim4Plus)));
}

QString chipText(const MaybePlacement& placement) {
  if (!placement) return QStringLiteral("?");
  if (placement->isReplicated()) return QStringLiteral("R");
  QString text = QStringLiteral("S%1").arg(placement->firstDim());
  if (placement->lastDim() > placement->firstDim()) text += QStringLiteral("-%1").arg(placement->lastDim());
  if (placement->replicas() > 1) text += QStringLiteral("×%1").arg(placement->replicas());
  if (!placement->blocks().empty()) text += QStringLiteral("b%1").arg(placement->blocks().size());
  if (placement->padding() > 0) text += QStringLiteral("+%1").arg(placement->padding());
  return text;
}

QString describe(Tint tint) {
  switch (tint) {
    case Tint::Dim0: return QStringLiteral("split on dimension 0");
    case Tint::Dim1: return QStringLiteral("split on dimension 1");
    case Tint::Dim2: return QStringLiteral("split on dimension 2");
    case Tint::Dim3: return QStringLiteral("split on dimension 3");
    case Tint::Dim4Plus: return QStringLiteral("split on dimension 4 or later");
    case Tint::Expert: return QStringLiteral("split by expert");
    case Tint::Replicated: return QStringLiteral("replicated on all ranks");
    case Tint::Unassigned: return QStringLiteral("not assigned yet");
  }
  return {};
}

QString describe(const MaybePlacement& placement, int ranks) {
  if (!placement || placement->isReplicated()) return describe(tintOf(placement));
  if (tintOf(placement, ranks) == Tint::Replicated) {
    return QStringLiteral("%1, as %2").arg(describe(Tint::Replicated), QString::fromStdString(placement->text()));
  }
  QString text =
      placement->lastDim() > placement->firstDim()
          ? QStringLiteral("split on dimensions %1 to %2 jointly").arg(placement->firstDim()).arg(placement->lastDim())
          : QStringLiteral("split on dimension %1").arg(placement->firstDim());
  if (placement->replicas() > 1)
    text += QStringLiteral(", each shard on %1 neighbouring ranks").arg(placement->replicas());
  if (!placement->blocks().empty()) text += QStringLiteral(", in %1 blocks").arg(placement->blocks().size());
  if (placement->padding() > 0) text += QStringLiteral(", padded by %1").arg(placement->padding());
  return text;
}

QString strategyText(LayerSplit split) {
  const std::string_view text = plan::toText(split);
  return QString::fromLatin1(text.data(), static_cast<qsizetype>(text.size()));
}

QString strategyText(rules::Strategy strategy, LayerSplit split) {
  const bool isCopied = split == LayerSplit::Replicated && strategy != rules::Strategy::Replicated;
  return QString::fromStdString(solve::strategyText(strategy, isCopied));
}

QString describe(LayerSplit split) {
  switch (split) {
    case LayerSplit::Column: return QStringLiteral("column: each rank computes a shard of the output features");
    case LayerSplit::ColumnGather: return QStringLiteral("column+gather: each rank computes a shard, then all-gather");
    case LayerSplit::Row: return QStringLiteral("row: each rank sums over a shard of the input features");
    case LayerSplit::Vocab: return QStringLiteral("vocab: each rank has a shard of the vocabulary");
    case LayerSplit::Expert: return QStringLiteral("expert: each rank computes some of the experts");
    case LayerSplit::Sequence:
      return QStringLiteral("sequence: replicated weights, each rank computes a shard of the sequence");
    case LayerSplit::Replicated: return QStringLiteral("replicated: every rank computes all of it");
    case LayerSplit::Open: return QStringLiteral("open: not decided yet");
  }
  return {};
}

Theme Theme::light() {
  Theme t;
  t.ground = rgb(0xFFFFFF);
  t.groundRaised = rgb(0xF6F7F9);
  t.groundSunken = rgb(0xECEEF2);
  t.text = rgb(0x1B1F24);
  t.textQuiet = rgb(0x565E6A);
  t.border = rgb(0xCDD2DA);
  t.borderStrong = rgb(0x8A93A0);
  t.edge = rgb(0x8D96A3);
  t.accent = rgb(0x2F6FEB);
  t.onAccent = rgb(0xFFFFFF);
  t.inputs = rgb(0x00795A);
  t.outputs = rgb(0xA8540A);
  t.conflict = rgb(0xD55E00);
  t.warning = rgb(0x8A5A00);
  t.good = rgb(0x00795A);
  t.searchHit = rgb(0xFFE58A);
  t.changed = rgb(0x8A2BE2);
  t.tints[0] = rgb(0xE69F00);
  t.tints[1] = rgb(0x56B4E9);
  t.tints[2] = rgb(0x009E73);
  t.tints[3] = rgb(0xCC79A7);
  t.tints[4] = rgb(0xF0E442);
  t.tints[5] = rgb(0x0072B2);
  t.tints[6] = rgb(0xB8BDC4);
  t.tints[7] = rgb(0xFFFFFF);
  t.splits[0] = rgb(0x5A45B0);
  t.splits[1] = rgb(0x3F6B78);
  t.splits[2] = rgb(0xA02C66);
  t.splits[3] = rgb(0x7A5C00);
  t.splits[4] = rgb(0x0072B2);
  t.splits[5] = rgb(0x00725A);
  t.splits[6] = t.tints[6];
  t.splits[7] = t.tints[7];
  return t;
}

Theme Theme::darkTheme() {
  Theme t = light();
  t.dark = true;
  t.ground = rgb(0x1E2127);
  t.groundRaised = rgb(0x262A31);
  t.groundSunken = rgb(0x17191E);
  t.text = rgb(0xE6E9EE);
  t.textQuiet = rgb(0xA3ABB7);
  t.border = rgb(0x3C424C);
  t.borderStrong = rgb(0x6D7683);
  t.edge = rgb(0x7C8694);
  t.inputs = rgb(0x3FBF95);
  t.outputs = rgb(0xF0944A);
  t.good = rgb(0x3FBF95);
  t.warning = rgb(0xE0B050);
  t.searchHit = rgb(0x6B5A10);
  t.changed = rgb(0xC9A0FF);
  t.tints[6] = rgb(0x5A616B);
  t.tints[7] = rgb(0x1E2127);
  t.splits[6] = t.tints[6];
  t.splits[7] = t.tints[7];
  return t;
}

Theme Theme::of(const QPalette& palette) {
  const QColor window = palette.color(QPalette::Window);
  const QColor text = palette.color(QPalette::WindowText);
  return window.lightnessF() < text.lightnessF() ? darkTheme() : light();
}

QPalette Theme::palette() const {
  QPalette p(groundRaised);
  p.setColor(QPalette::Window, groundRaised);
  p.setColor(QPalette::Base, ground);
  p.setColor(QPalette::AlternateBase, groundRaised);
  p.setColor(QPalette::Button, dark ? groundRaised.lighter(120) : groundRaised);
  p.setColor(QPalette::ToolTipBase, dark ? groundRaised : ground);
  p.setColor(QPalette::Highlight, accent);
  p.setColor(QPalette::HighlightedText, onAccent);
  p.setColor(QPalette::Link, dark ? rgb(0x7FA8FF) : accent);
  p.setColor(QPalette::Mid, border);
  p.setColor(QPalette::Dark, borderStrong);
  p.setColor(QPalette::PlaceholderText, textQuiet);
  for (const auto role :
       {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText, QPalette::BrightText})
    p.setColor(role, text);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, blend(text, groundRaised, 0.5));
  return p;
}

QColor Theme::textOn(const QColor& background) const {
  static const std::array candidates{rgb(0x1B1F24), rgb(0xFFFFFF), rgb(0x000000)};
  const QColor* best = &candidates[0];
  for (const QColor& candidate : candidates) {
    if (contrast(candidate, background) >= 4.5) return candidate;
    if (contrast(candidate, background) > contrast(*best, background)) best = &candidate;
  }
  return *best;
}

QColor Theme::heat(double fraction) const {
  // Steps of matplotlib's "magma" (Smith and van der Walt, 2015; CC0), in order of distance from the ground colour.
  static const std::array steps{rgb(0xFCF0C8), rgb(0xFEC488), rgb(0xFB8761), rgb(0xD3436E),
                                rgb(0x8C2981), rgb(0x4F127B), rgb(0x221150)};
  if (fraction <= 0) return ground;
  const double at = std::min(fraction, 1.0) * static_cast<double>(steps.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), steps.size() - 2);
  const double part = at - static_cast<double>(low);
  if (!dark) return blend(steps[low], steps[low + 1], part);
  return blend(steps[steps.size() - 1 - low], steps[steps.size() - 2 - low], part);
}

QBrush Theme::patternOn(const QColor& color, Qt::BrushStyle style, int alpha) const {
  QColor ink = textOn(color);
  ink.setAlpha(alpha);
  return QBrush(ink, style);
}

QBrush Theme::pattern(Tint tint) const {
  static constexpr Qt::BrushStyle styles[kTintCount] = {
      Qt::NoBrush,    Qt::BDiagPattern,     Qt::VerPattern,   Qt::Dense6Pattern,
      Qt::HorPattern, Qt::DiagCrossPattern, Qt::FDiagPattern, Qt::NoBrush,
  };
  return patternOn(color(tint), styles[static_cast<int>(tint)], tint == Tint::Replicated ? kFaint : 120);
}

QBrush Theme::pattern(LayerSplit split) const {
  static constexpr Qt::BrushStyle styles[kLayerSplits] = {
      Qt::VerPattern,       Qt::CrossPattern,  Qt::HorPattern,   Qt::BDiagPattern,
      Qt::DiagCrossPattern, Qt::Dense4Pattern, Qt::FDiagPattern, Qt::NoBrush,
  };
  return patternOn(color(split), styles[static_cast<int>(split)], split == LayerSplit::Replicated ? kFaint : 150);
}

double contrast(const QColor& a, const QColor& b) {
  const auto luminance = [](const QColor& c) {
    const auto linear = [](double v) { return v <= 0.03928 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
  };
  const double la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

QColor blend(const QColor& under, const QColor& over, double opacity) {
  const auto mix = [opacity](double u, double o) { return static_cast<float>(u + (o - u) * opacity); };
  return QColor::fromRgbF(mix(under.redF(), over.redF()), mix(under.greenF(), over.greenF()),
                          mix(under.blueF(), over.blueF()));
}

}  // namespace cleave::views
