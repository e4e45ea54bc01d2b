// In this file, top to bottom: style and script of the picture, the tree of frames, colours, one
// frame, one graph, the document.
#include "cli/pictures/flame_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "cli/pictures/svg.h"
#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr double kFlameWidth = 1200, kFlameMargin = 10, kFlameBar = kFlameWidth - 2 * kFlameMargin;
constexpr double kFlameRow = 18, kFlameHeader = 46, kFlameGap = 22;
constexpr double kNarrowestFrame = 0.1;  // of a frame that is drawn
constexpr double kBetweenFrames = 0.5;
constexpr std::size_t kLabelPadding = 3, kShortestLabel = 3;  // pixels; characters

constexpr std::string_view kFlameStyle = R"(
.f { cursor: pointer; }
.f text { fill: #1c1c1c; pointer-events: none; }
.f:hover rect { stroke: #111; stroke-width: 1; }
.g rect { fill: #c9c9c4; } .r rect { fill: #dcdcd8; }
.k0 rect { fill: #e8b27c; } .k1 rect { fill: #eabb8a; } .k2 rect { fill: #e5a96f; } .k3 rect { fill: #edc598; }
.u0 rect { fill: #93b7d6; } .u1 rect { fill: #a0c0db; } .u2 rect { fill: #86aed1; } .u3 rect { fill: #aecae1; }
.d0 rect { fill: #5b8fd0; } .d1 rect { fill: #93b5e1; } .d2 rect { fill: #c6d8ef; } .d3 rect { fill: #e4e4e0; }
.d4 rect { fill: #f4cfc6; } .d5 rect { fill: #e99b8a; } .d6 rect { fill: #d9634f; }
.above rect { opacity: 0.45; }
.f.hit rect { fill: #c58bd6; }
.button { cursor: pointer; text-decoration: underline; }
@media (prefers-color-scheme: dark) { .f:hover rect { stroke: #fff; } }
)";

// The script takes numbers from data-s (where a frame starts) and data-n (its count), and names
// from <title>. It puts text into text nodes only. State: #z=GRAPH.FRAME,...&q=SEARCH
constexpr std::string_view kFlameScript = R"js(
(function () {
  'use strict';
  var left = 10, width = 1180, column = 7.23, query = '';
  var graphs = [].map.call(document.querySelectorAll('.graph'), function (graph) {
    var about = graph.querySelector('.about');
    return {about: about, told: about.textContent, zoomed: 0,
      frames: [].map.call(graph.querySelectorAll('.f'), function (box) {
        var title = box.querySelector('title').textContent, rect = box.querySelector('rect');
        var name = title.split('\n')[0], tick = name.indexOf('`');
        return {box: box, rect: rect, text: box.querySelector('text'), title: title, name: name,
          label: tick >= 0 && name.slice(-9) !== '[unknown]' ? name.slice(tick + 1) : name,
          start: Number(box.getAttribute('data-s')), count: Number(box.getAttribute('data-n')),
          level: Number(rect.getAttribute('y'))};
      })};
  });
  function place(frame, x, w) {
    frame.rect.setAttribute('x', x.toFixed(2));
    frame.rect.setAttribute('width', (w > 2 ? w - 0.5 : w).toFixed(2));
    var most = Math.floor((w - 6) / column), letters = Array.from(frame.label);
    var label = most < 3 ? '' : letters.length <= most ? frame.label :
      letters.slice(0, most - 2).join('') + '..';
    if (!frame.text && label !== '') {
      frame.text = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      frame.text.setAttribute('y', frame.level + 13);
      frame.box.appendChild(frame.text);
    }
    if (!frame.text) return;
    frame.text.setAttribute('x', (x + 3).toFixed(2));
    frame.text.textContent = label;
  }
  function zoom(graph) {
    var to = graph.frames[graph.zoomed], end = to.start + to.count;
    graph.frames.forEach(function (frame) {
      var stop = frame.start + frame.count;
      var around = frame.start <= to.start && stop >= end && frame.level > to.level;
      var inside = frame.start >= to.start && stop <= end && frame.level <= to.level;
      frame.box.style.display = around || inside ? '' : 'none';
      frame.box.classList.toggle('above', around);
      if (around) place(frame, left, width);
      if (inside) {
        place(frame, left + (frame.start - to.start) / to.count * width,
          frame.count / to.count * width);
      }
    });
  }
  function search(graph) {
    var found = 0, end = 0, pattern = null;
    try { pattern = query === '' ? null : new RegExp(query, 'i'); } catch (e) { pattern = null; }
    graph.frames.forEach(function (frame) {
      var hit = query !== '' && (pattern ? pattern.test(frame.name) : frame.name.indexOf(query) >= 0);
      frame.box.classList.toggle('hit', hit);
      if (hit && frame.start >= end) {
        found += frame.count;
        end = frame.start + frame.count;
      }
    });
    graph.shown = query === '' ? graph.told : graph.told + '; ' +
      (100 * found / graph.frames[0].count).toFixed(2) + ' % match ' + query;
    graph.about.textContent = graph.shown;
  }
  function show() {
    graphs.forEach(zoom);
    graphs.forEach(search);
  }
  function keep() {
    var zoomed = [];
    graphs.forEach(function (graph, i) { if (graph.zoomed) zoomed.push(i + '.' + graph.zoomed); });
    var state = [];
    if (zoomed.length) state.push('z=' + zoomed.join(','));
    if (query !== '') state.push('q=' + encodeURIComponent(query));
    window.location.hash = state.join('&');
  }
  function restore() {
    var kept = window.location.hash.slice(1).split('&');
    graphs.forEach(function (graph) { graph.zoomed = 0; });
    query = '';
    kept.forEach(function (part) {
      if (part.slice(0, 2) === 'q=') {
        try { query = decodeURIComponent(part.slice(2)); } catch (e) { query = ''; }
      }
      if (part.slice(0, 2) !== 'z=') return;
      part.slice(2).split(',').forEach(function (pair) {
        var numbers = pair.split('.').map(Number), graph = graphs[numbers[0]];
        if (graph && graph.frames[numbers[1]]) graph.zoomed = numbers[1];
      });
    });
    show();
  }
  graphs.forEach(function (graph) {
    graph.shown = graph.told;
    graph.frames.forEach(function (frame, i) {
      frame.box.addEventListener('click', function () { graph.zoomed = i; keep(); });
      frame.box.addEventListener('mouseover', function () {
        graph.about.textContent = frame.title.replace('\n', ': ');
      });
      frame.box.addEventListener('mouseout', function () {
        graph.about.textContent = graph.shown;
      });
    });
  });
  function ask() {
    var wanted = window.prompt('Search for a name (a regular expression):', query);
    if (wanted === null) return;
    query = wanted;
    keep();
  }
  function reset() {
    graphs.forEach(function (graph) { graph.zoomed = 0; });
    query = '';
    keep();
  }
  document.getElementById('search').addEventListener('click', ask);
  document.getElementById('reset').addEventListener('click', reset);
  [].forEach.call(document.querySelectorAll('.button'), function (button) {
    button.style.display = '';
  });
  window.addEventListener('hashchange', restore);
  window.addEventListener('keydown', function (key) {
    if (key.key === '/') { key.preventDefault(); ask(); }
    if (key.key === 'Escape') reset();
  });
  if (window.location.hash.length > 1) restore();
})();
)js";

struct FlameNode {
  const FrameName* name = nullptr;
  std::uint32_t depth = 0;
  std::uint64_t start = 0, count = 0, before = 0;
};

/// The frames of all samples, each before those that it calls, which come by name.
class FlameTree {
 public:
  FlameTree(const FlameGraph& graph, const std::vector<FrameName>& names) : names_(names) {
    nodes_.push_back({&root_, 0, 0, 0, 0});
    path_.push_back({0, 0});
    for (std::size_t i = 0; i < graph.samples.size(); ++i) {
      add(graph.samples[i].frames, graph.samples[i].count,
          graph.before.empty() ? 0 : graph.before[i]);
    }
  }
  FlameTree(const FlameTree&) = delete;
  FlameTree& operator=(const FlameTree&) = delete;

  const std::vector<FlameNode>& nodes() const { return nodes_; }
  const FlameNode& root() const { return nodes_.front(); }

 private:
  struct Step {
    std::size_t node;
    std::uint32_t frame;
  };
  void add(const std::vector<std::uint32_t>& frames, std::uint64_t count, std::uint64_t before) {
    const std::uint64_t start = nodes_.front().count;
    std::size_t common = 1;
    while (common < path_.size() && common <= frames.size() &&
           path_[common].frame == frames[common - 1]) {
      ++common;
    }
    path_.resize(common);
    for (std::size_t i = common; i <= frames.size(); ++i) {
      path_.push_back({nodes_.size(), frames[i - 1]});
      nodes_.push_back({&names_[frames[i - 1]], static_cast<std::uint32_t>(i), start, 0, 0});
    }
    for (const Step& step : path_) {
      FlameNode& node = nodes_[step.node];
      node.count = saturated_sum(node.count, count);
      node.before = saturated_sum(node.before, before);
    }
  }

  const std::vector<FrameName>& names_;
  const FrameName root_{"all", FrameKind::Key};
  std::vector<FlameNode> nodes_;
  std::vector<Step> path_;  // the sample that was added last, with the root
};

double share_of(std::uint64_t part, std::uint64_t total) {
  return total == 0 ? 0 : static_cast<double>(part) / static_cast<double>(total);
}

/// Differences by how many of a hundred the share has grown or shrunk.
std::string_view difference_class(const FlameNode& node, const FlameNode& root) {
  constexpr std::array<double, 6> kSteps{-0.08, -0.02, -0.005, 0.005, 0.02, 0.08};
  constexpr std::array<std::string_view, 7> kClasses{"d0", "d1", "d2", "d3", "d4", "d5", "d6"};
  const double grown = share_of(node.count, root.count) - share_of(node.before, root.before);
  const auto step = std::ranges::count_if(kSteps, [&](double each) { return grown > each; });
  return kClasses[static_cast<std::size_t>(step)];
}

/// Shades of one colour tell neighbours apart; the same name has the same shade everywhere.
std::string_view colour_class(const FlameNode& node) {
  constexpr std::array<std::string_view, 4> kUser{"u0", "u1", "u2", "u3"},
      kKernel{"k0", "k1", "k2", "k3"};
  if (node.depth == 0) return "r";
  std::uint32_t hash = 2166136261;
  for (const char c : node.name->text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  switch (node.name->kind) {
    case FrameKind::Key: return "g";
    case FrameKind::User: return kUser[(hash >> 16) % kUser.size()];
    case FrameKind::Kernel: return kKernel[(hash >> 16) % kKernel.size()];
  }
  return "g";
}

/// The function alone: its module is in the title.
std::string_view label_of(std::string_view name) {
  const std::size_t tick = name.find('`');
  return tick == name.npos || name.ends_with("[unknown]") ? name : name.substr(tick + 1);
}

void append_frame(std::string& out, const FlameNode& node, const FlameNode& root, double y,
                  bool differs) {
  const double x = kFlameMargin + share_of(node.start, root.count) * kFlameBar;
  const double width = share_of(node.count, root.count) * kFlameBar;
  out += "<g class=\"f ";
  out += differs && node.depth != 0 ? difference_class(node, root) : colour_class(node);
  out += "\" data-s=\"";
  const fmt::format_int start(node.start), count(node.count);
  out.append(start.data(), start.size()).append("\" data-n=\"");
  out.append(count.data(), count.size()).append("\"><title>");
  append_escaped(out, node.name->text);
  out += '\n';
  append_grouped(out, node.count);
  out += " (";
  append_share(out, node.count, root.count);
  out += ')';
  if (differs) {
    out += ", before ";
    append_grouped(out, node.before);
    out += " (";
    append_share(out, node.before, std::max<std::uint64_t>(root.before, 1));
    out += ')';
  }
  out += "</title><rect x=\"";
  append_pixels(out, x);
  out += "\" y=\"";
  append_pixels(out, y);
  out += "\" width=\"";
  append_pixels(out, width > 2 ? width - kBetweenFrames : width);
  out += "\" height=\"17\"/>";
  const auto room =
      static_cast<std::size_t>(std::max(0.0, width - 2 * kLabelPadding) / kCharacterWidth);
  if (room >= kShortestLabel) {
    out += "<text x=\"";
    append_pixels(out, x + kLabelPadding);
    out += "\" y=\"";
    append_pixels(out, y + 13);
    out += "\">";
    append_escaped(out, shortened(label_of(node.name->text), room));
    out += "</text>";
  }
  out += "</g>\n";
}

bool is_drawn(const FlameNode& node, const FlameNode& root) {
  return share_of(node.count, root.count) * kFlameBar >= kNarrowestFrame;
}

/// "12,345 in 67 stacks; ..."
std::string about_graph(const FlameGraph& graph, const FlameTree& tree, std::size_t narrow) {
  std::string text;
  append_grouped(text, tree.root().count);
  text += " in ";
  append_grouped(text, static_cast<std::uint64_t>(std::ranges::count_if(
                           graph.samples, [](const auto& sample) { return sample.count != 0; })));
  text += " stacks";
  if (narrow != 0) {
    text += "; without ";
    append_grouped(text, narrow);
    text += " frames that would be too narrow to see";
  }
  if (graph.before.empty()) return text;
  text += "; red: a larger share than before (";
  append_grouped(text, tree.root().before);
  return text + "), blue: a smaller one";
}

/// Appends a graph whose top is at `top`; where it ends.
double append_graph(std::string& out, const FlameGraph& graph, const FlameTree& tree, double top) {
  const FlameNode& root = tree.root();
  std::uint32_t deepest = 0;
  std::size_t narrow = 0;
  for (const FlameNode& node : tree.nodes()) {
    if (is_drawn(node, root)) {
      deepest = std::max(deepest, node.depth);
    } else if (node.count != 0) {
      ++narrow;
    }
  }
  const double bottom = top + kFlameHeader + deepest * kFlameRow;
  fmt::format_to(std::back_inserter(out),
                 "<g class=\"graph\">\n<text class=\"title\" x=\"{}\" y=\"{}\">", kFlameMargin,
                 top + 16);
  append_escaped(out, graph.title);
  fmt::format_to(std::back_inserter(out), "</text>\n<text class=\"quiet about\" x=\"{}\" y=\"{}\">",
                 kFlameMargin, top + 36);
  append_escaped(out, about_graph(graph, tree, narrow));
  out += "</text>\n";
  for (const FlameNode& node : tree.nodes()) {
    if (!is_drawn(node, root)) continue;
    append_frame(out, node, root, bottom - node.depth * kFlameRow, !graph.before.empty());
  }
  out += "</g>\n";
  return bottom + kFlameRow;
}

}  // namespace

std::string flame_svg(const std::vector<FlameGraph>& graphs, const std::vector<FrameName>& names) {
  std::string body;
  double bottom = kFlameMargin;
  for (const FlameGraph& graph : graphs) {
    const FlameTree tree(graph, names);
    bottom = append_graph(body, graph, tree, bottom) + kFlameGap;
  }
  std::string svg;
  svg.reserve(body.size() + kFlameStyle.size() + kFlameScript.size() + 4096);
  begin_svg(svg, kFlameWidth, bottom - kFlameGap + kFlameMargin,
            graphs.empty() ? "" : graphs.front().title, kFlameStyle);
  svg += body;
  for (const auto& [id, label, x] :
       {std::tuple("search", "Search", 1040), std::tuple("reset", "Reset", 1150)}) {
    fmt::format_to(
        std::back_inserter(svg),
        "<text class=\"button\" id=\"{}\" x=\"{}\" y=\"26\" style=\"display:none\">{}</text>\n", id,
        x, label);
  }
  svg.append("<script><![CDATA[").append(kFlameScript).append("]]></script>\n</svg>\n");
  return svg;
}

}  // namespace ringside::cli
