#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "related_rules.h"
#include "report.h"

namespace accelerate::launch {

namespace {

constexpr int kWidth = 860;
constexpr int kHeight = 300;
constexpr int kLeft = 70;
constexpr int kBottom = 30;
constexpr std::size_t kPoints = 1200;  // of a curve: more can't be told apart

// The original's first. Okabe and Ito's palette, which colour-blind readers can tell apart.
constexpr std::array<const char*, 6> kColours = {"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00"};

std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

struct Curve {
  std::string title;
  std::string colour;
  std::vector<double> values;
  bool dashed = false;
};

class Chart {
 public:
  Chart(std::vector<Curve> curves, bool logarithmic) : curves_(std::move(curves)), logarithmic_(logarithmic) {
    for (const Curve& curve : curves_) {
      count_ = std::max(count_, curve.values.size());
      for (const double value : curve.values) {
        if (!Shown(value)) continue;
        low_ = std::min(low_, Scale(value));
        high_ = std::max(high_, Scale(value));
      }
    }
    if (low_ > high_) low_ = 0, high_ = 1;
    if (low_ == high_) low_ -= 0.5, high_ += 0.5;
  }

  std::string Draw() const {
    std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", kWidth, kHeight);
    for (int i = 0; i <= 4; ++i) {
      const double scaled = low_ + (high_ - low_) * i / 4;
      svg += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.3g}</text>\n",
          kLeft, kWidth - 10, Y(scaled), kLeft - 6, Y(scaled) + 4, logarithmic_ ? std::pow(10.0, scaled) : scaled);
    }
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\">0</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">backward pass {}</text>\n", kLeft,
        kHeight - 8, kWidth - 10, kHeight - 8, count_ == 0 ? 0 : count_ - 1);
    for (const Curve& curve : curves_) svg += Line(curve);
    svg += "</svg>\n<p class=\"legend\">";
    for (const Curve& curve : curves_) {
      svg += fmt::format("<span style=\"color:{}\">{} {}</span> ", curve.colour, curve.dashed ? "- -" : "&#8212;",
                         Escape(curve.title));
    }
    return svg + "</p>\n";
  }

 private:
  bool Shown(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  double Scale(double value) const { return logarithmic_ ? std::log10(value) : value; }
  double X(std::size_t i) const {
    return kLeft + static_cast<double>(kWidth - 10 - kLeft) * static_cast<double>(i) /
                       static_cast<double>(std::max<std::size_t>(1, count_ - 1));
  }
  double Y(double scaled) const { return 10 + (kHeight - kBottom - 10) * (1 - (scaled - low_) / (high_ - low_)); }

  std::string Line(const Curve& curve) const {
    const std::size_t stride = std::max<std::size_t>(1, curve.values.size() / kPoints);
    std::string path;
    bool drawing = false;
    for (std::size_t i = 0; i < curve.values.size(); i += stride) {
      const bool shown = Shown(curve.values[i]);
      if (shown) path += fmt::format("{}{:.1f} {:.1f}", drawing ? "L" : "M", X(i), Y(Scale(curve.values[i])));
      drawing = shown;
    }
    return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"{}/>\n", path, curve.colour,
                       curve.dashed ? " stroke-dasharray=\"6 4\"" : "");
  }

  std::vector<Curve> curves_;
  bool logarithmic_;
  std::size_t count_ = 0;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

std::string Colour(std::size_t i) { return kColours[i % kColours.size()]; }

std::string Losses(const Report& report) {
  std::vector<Curve> curves = {{"original", Colour(0), report.original_losses, false}};
  for (const RunReport& run : report.runs) curves.push_back({RunTitle(run), Colour(curves.size()), run.losses, true});
  return Chart(std::move(curves), false).Draw();
}

std::string Differences(const Report& report) {
  std::vector<Curve> curves;
  std::vector<double> tolerances;
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunReport& run = report.runs[i];
    curves.push_back({RunTitle(run), Colour(i + 1), run.differences, false});
    if (run.ranks > 1 && run.tolerances.size() > tolerances.size()) tolerances = run.tolerances;
  }
  curves.push_back({"tolerance", "#888888", tolerances, true});
  return Chart(std::move(curves), true).Draw();
}

std::string FirstDifference(const Difference& first) {
  std::string text = fmt::format("<p><b>First:</b> {}: {}", Escape(first.check), Escape(first.where));
  if (!first.tensor.empty()) text += ", " + Escape(first.tensor);
  if (first.rank) text += fmt::format(", rank {}", *first.rank);
  text += fmt::format("</p><pre>{}</pre>", Escape(first.what));
  if (first.tolerance > 0) {
    text += fmt::format("<p>relative difference {:.1e}, tolerance {:.1e}</p>", first.difference, first.tolerance);
  }
  text += fmt::format("<p><b>{}</b>: {}</p>\n", Escape(first.explanation.kind), Escape(first.explanation.text));
  const auto rules = RelatedRules(first.explanation.kind);
  if (rules.empty()) return text;
  text += "<p>Rules of accelerate-migrate that concern this (<code>--explain CODE</code>):</p><ul>\n";
  for (const auto& [code, name] : rules) text += fmt::format("<li>{} {}</li>\n", code, name);
  return text + "</ul>\n";
}

std::string RunSection(const RunReport& run) {
  std::string text = fmt::format("<h2>{}: <span class=\"{}\">{}</span></h2>\n<table>\n", Escape(RunTitle(run)),
                                 run.same() ? "same" : "differs", run.same() ? "same" : "differs");
  for (const Check& check : run.checks) {
    const std::string outcome = OutcomeName(check.outcome);
    text += fmt::format("<tr><td>{}</td><td class=\"{}\">{}</td><td>{}</td></tr>\n", Escape(check.name), outcome,
                        outcome, Escape(check.detail));
  }
  text += "</table>\n";
  if (run.first) text += FirstDifference(*run.first);
  return text;
}

}  // namespace

std::string HtmlReport(const Report& report) {
  std::string command = report.migrated;
  for (const std::string& argument : report.arguments) command += " " + argument;
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>accelerate-cpp verify</title>\n<style>\n"
      "body{{font:15px/1.45 sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}}\n"
      "svg{{width:100%;font:11px sans-serif}} td{{padding:2px 12px 2px 0;vertical-align:top}}\n"
      "pre{{white-space:pre-wrap;background:#f5f5f5;padding:8px}} .legend span{{margin-right:1em}}\n"
      ".same{{color:#00724d}} .differs{{color:#b00020;font-weight:bold}} .unknown{{color:#777}}\n"
      "</style></head><body>\n<h1>{}</h1>\n<p>{}<br>compared with {}</p>\n",
      report.same() ? "The same training" : "Not the same training", Escape(command), Escape(report.original));
  html += "<h2>Loss</h2>\n" + Losses(report);
  html += "<h2>Relative difference from the original's loss</h2>\n" + Differences(report);
  for (const RunReport& run : report.runs) html += RunSection(run);
  return html + "</body></html>\n";
}

}  // namespace accelerate::launch
