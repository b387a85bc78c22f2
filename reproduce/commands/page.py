"""The template of the report's page (Jinja2, autoescaped): one HTML file without scripts or links to other hosts."""

TEMPLATE = """\
{% macro counts(count) %}
{% for verdict in names %}
<td class="n">{{ count.get(verdict, 0) or "" }}</td>
{% endfor %}
<td class="n">{{ count.values() | sum }}</td>
{% endmacro %}
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reproduction at {{ scale }} scale</title>
<style>
:root { --ink: #1c2733; --soft: #5b6875; --line: #d9dfe5; --back: #fff; --tint: #f5f7f9; --link: #14578f; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 5rem; max-width: 70rem; color: var(--ink); background: var(--back);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.45rem; margin: 3.5rem 0 0; padding-bottom: .3rem; border-bottom: 2px solid var(--ink); }
h3 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
h4, h5 { font-size: .95rem; margin: 1.25rem 0 .4rem; }
a { color: var(--link); }
p, li { max-width: 48rem; }
.soft, .links { color: var(--soft); font-size: .875rem; }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th { text-align: left; vertical-align: bottom; border-bottom: 1.5px solid var(--ink); }
th, td { padding: .35rem .75rem .35rem 0; }
td { vertical-align: top; border-bottom: 1px solid var(--line); }
.n { text-align: right; white-space: nowrap; }
.claims td:nth-child(2) { min-width: 20rem; }
img { max-width: 100%; height: auto; background: #fff; }
section ul { font-size: .85rem; color: var(--soft); padding-left: 1.1rem; }
.v { display: inline-block; padding: .05rem .5rem; border-radius: .75rem; font-size: .8rem; white-space: nowrap; }
.v-reproduced { background: #d9f0e1; color: #125c33; }
.v-contradicted { background: #fbdedb; color: #8f1d14; }
.v-depends { background: #e6e0f5; color: #46308a; }
.v-inconclusive { background: #fdf0cf; color: #6b4c00; }
.v-not-run { background: #e8ecf0; color: #46525e; }
</style>
</head>
<body>
<h1>Reproduction at {{ scale }} scale</h1>
{% if scale == "paper" %}
<p class="soft">The settings are those of the papers.</p>
{% else %}
<p class="soft">Smaller than the papers: each caption says what stands in for what. Verdicts are about this scale.</p>
{% endif %}
<p class="soft">Made from {{ results }}.</p>
{% if refused %}
<p class="soft">Refused, and not used:</p>
<ul class="soft">
{% for line in refused %}
<li>{{ line }}</li>
{% endfor %}
</ul>
{% endif %}
<h2 id="scoreboard">Scoreboard</h2>
{% for line in headline %}
<p>{{ line }}</p>
{% endfor %}
<div class="wide"><table>
<thead><tr><th>What the verdicts rest on</th><th class="n">judged</th>
{% for name in names[:-1] %}
<th class="n">{{ name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in grounds %}
<tr><td>{{ row[0] }}</td>
{% for number in row[1:] %}
<td class="n">{{ number }}</td>
{% endfor %}
</tr>
{% endfor %}
</tbody></table></div>
<div class="wide"><table>
<thead><tr><th>Paper</th><th class="n">tables and figures</th><th class="n">made</th><th class="n">run</th>
{% for name in names %}
<th class="n">{{ name }}</th>
{% endfor %}
<th class="n">claims</th></tr></thead>
<tbody>
{% for paper in papers %}
<tr><td><a href="#{{ paper.key }}">{{ paper.title }}</a></td>
{% for number in ((paper.coverage.has, paper.coverage.made, paper.coverage.run) if paper.coverage else ("", "", "")) %}
<td class="n">{{ number }}</td>
{% endfor %}
{{ counts(paper.count) }}</tr>
{% endfor %}
<tr><td><strong>all</strong></td><td></td><td></td><td></td>{{ counts(total) }}</tr>
</tbody></table></div>
{% for paper in papers %}
<h2 id="{{ paper.key }}">{{ paper.title }}</h2>
<p class="links">
{% for item in paper["items"] %}
<a href="#{{ paper.key }}-{{ item.artifact.name }}">{{ item.artifact.name }}</a>{{ " · " if not loop.last }}
{% endfor %}
</p>
{% for item in paper["items"] %}
<section id="{{ paper.key }}-{{ item.artifact.name }}">
<h3>{{ item.artifact.name }}: {{ item.artifact.title }}</h3>
{% if item.target %}
<p class="soft">Not made yet: <code>snakemake {{ item.target }} --cores 2</code></p>
{% elif item.image %}
<img src="{{ item.image }}" alt="{{ item.artifact.title }}" loading="lazy">
{% else %}
{{ item.table | safe }}
{% endif %}
{% if item.link %}
<p class="links"><a href="../../{{ item.link }}">{{ item.link }}</a></p>
{% endif %}
{% if item.verdicts %}
<div class="wide"><table class="claims">
<thead><tr><th>Verdict</th><th>The paper's claim</th><th class="n">Effect</th><th class="n">95 % interval</th>
<th class="n">n</th><th>Paper's numbers</th></tr></thead>
<tbody>
{% for v in item.verdicts %}
<tr>
<td><span class="v v-{{ v.verdict | replace(" ", "-") }}">{{ v.verdict }}</span>
{% if v.rests_on %}
<br><span class="soft">{{ v.rests_on }}</span>
{% endif %}
</td>
<td>{{ v.statement }}
{% for text in (v.covers, v.reason, v.note) if text %}
<br><span class="soft">{{ text }}</span>
{% endfor %}
</td>
<td class="n">{% if v.effect is not none %}{{ v.effect | number }} {{ v.unit }}{% endif %}</td>
<td class="n">{% if v.interval %}{{ v.interval[0] | number }} to {{ v.interval[1] | number }}{% endif %}</td>
<td class="n">{{ v.n or "" }}</td>
<td>{{ "" if v.paper_numbers == "na" else v.paper_numbers }}</td>
</tr>
{% endfor %}
</tbody></table></div>
{% endif %}
</section>
{% endfor %}
{% endfor %}
</body>
</html>
"""
