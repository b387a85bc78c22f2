"""The pages of the committed results in a real browser: filters, links, sizes, no errors, no other host."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reproduce.declare.paper import artifacts
from reproduce.pages.page import page
from reproduce.verdicts.scoreboard import Verdict, claims

selenium = pytest.importorskip("selenium", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver: apt-get install chromium chromium-driver"
)

OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)


@pytest.fixture
def board(boards: dict[str, list[Verdict]]) -> list[Verdict]:
    return boards["reduced"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, boards: dict[str, list[Verdict]]) -> Path:
    """The page by itself, as one would get it by mail."""
    file = tmp_path_factory.mktemp("mail") / "index.html"
    file.write_text(page("reduced", boards["reduced"]), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for option in (*OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    resize(driver, 1280)
    driver.get(file.as_uri())
    yield driver
    driver.quit()


@pytest.fixture(autouse=True)
def _everything_shown(browser: Any) -> None:
    resize(browser, 1280)
    choose(browser)
    fold(browser, True)


def fold(browser: Any, opened: bool) -> None:
    browser.execute_script("for (const e of document.querySelectorAll('details')) e.open = arguments[0]", opened)


def resize(browser: Any, width: int, **media: str) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": media.get("scheme", "light")}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media.get("media", ""), "features": features})


def choose(browser: Any, **values: str) -> None:
    """Set the filters as a person would leave them; those not named are empty."""
    script = """
    const form = document.getElementById("filters");
    for (const name of ["text", "paper", "verdict", "class", "artifact"])
      form.elements[name].value = arguments[0][name] || "";
    form.dispatchEvent(new Event("input"));
    """
    browser.execute_script(script, values)


def visible(browser: Any, selector: str) -> list[str]:
    script = "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility()).map(e => e.id)"
    return list(browser.execute_script(script, selector))


CLAIMS = ".claims > li"


def test_every_claim_and_artifact_is_there(browser: Any, board: list[Verdict]) -> None:
    assert len(visible(browser, CLAIMS)) == len(board) == len(set(visible(browser, CLAIMS)))
    assert set(visible(browser, "article")) == {a.id.replace("/", "-") for a in artifacts()}
    assert (
        browser.execute_script("return document.getElementById('shown').textContent")
        == f"{len(board)} claims and checks"
    )
    matrix = (
        "return [...document.querySelectorAll('.matrix tfoot td')].reduce((sum, e) => sum + Number(e.textContent), 0)"
    )
    assert browser.execute_script(matrix) == len(claims(board)), "checks are not counted by verdict"


def test_filters_show_what_they_name_and_nothing_else(browser: Any, board: list[Verdict]) -> None:
    choose(browser, verdict="refuted")
    assert len(visible(browser, CLAIMS)) == sum(v.verdict == "refuted" for v in board)
    assert len(visible(browser, "article")) == len({v.artifact for v in board if v.verdict == "refuted"})
    choose(browser, **{"class": "quadratics"})
    assert len(visible(browser, CLAIMS)) == sum(v.rests_on == "quadratics" for v in board)
    choose(browser, paper="fiarse", verdict="inconclusive")
    wanted = [v for v in board if v.artifact.startswith("fiarse/") and v.verdict == "inconclusive"]
    assert len(visible(browser, CLAIMS)) == len(wanted)
    assert visible(browser, "section.paper") == ["fiarse"]
    shown = "[...document.querySelectorAll('.contents [data-of]')].filter(e => e.checkVisibility())"
    entries = browser.execute_script(f"return {shown}.map(e => e.dataset.of)")
    assert entries == ["fiarse", *dict.fromkeys(visible(browser, "article"))]
    choose(browser, text="lottery of nothing")
    assert visible(browser, f"{CLAIMS}, article, section.paper") == []
    browser.execute_script("document.querySelector('button[type=reset]').click()")
    browser.implicitly_wait(1)
    assert (
        browser.execute_async_script(
            "setTimeout(() => arguments[0](document.getElementById('shown').textContent), 100)"
        )
        == f"{len(board)} claims and checks"
    )


def go(browser: Any, place: str) -> None:
    """Follow a link inside the page."""
    browser.execute_async_script("location.hash = arguments[0]; setTimeout(arguments[1], 100)", place)


def test_a_cell_of_the_scoreboard_shows_its_claims_and_the_address_keeps_them(
    browser: Any, board: list[Verdict], file: Path
) -> None:
    browser.execute_async_script(
        "document.querySelector('.matrix a[href*=\"fedacs-fig7&verdict=refuted\"]').click();"
        "setTimeout(arguments[0], 100)"
    )
    wanted = [v for v in board if (v.artifact, v.verdict) == ("fedacs/fig7", "refuted")]
    assert visible(browser, "article") == ["fedacs-fig7"]
    assert len(visible(browser, CLAIMS)) == len(wanted) > 0
    assert visible(browser, ".front") == [], "what is found is what is seen"
    assert browser.execute_script("return document.querySelector('article:not([hidden])').offsetTop") < 500
    choose(browser, paper="fiarse", verdict="inconclusive")
    browser.execute_script("document.getElementById('filters').dispatchEvent(new Event('input'))")
    address = browser.execute_script("return location.hash")
    assert address == "#?paper=fiarse&verdict=inconclusive"
    shown = visible(browser, CLAIMS)
    browser.get("about:blank")
    browser.get(file.as_uri() + address)
    assert visible(browser, CLAIMS) == shown
    go(browser, "fedagrac-table6")
    assert "fedagrac-table6" in visible(browser, "article"), "a place is never hidden"
    assert len(visible(browser, CLAIMS)) == len(board)


def test_papers_are_folded_and_a_link_or_a_filter_opens_them(browser: Any) -> None:
    go(browser, "")
    fold(browser, False)
    assert browser.execute_script("return document.querySelector('main').scrollHeight") < 2000
    go(browser, "fedagrac-table6")
    assert "fedagrac-table6" in visible(browser, "article")
    assert "fiarse-table1" not in visible(browser, "article")
    choose(browser, paper="fiarse")
    assert "fiarse-table1" in visible(browser, "article")


def test_nothing_is_fetched_and_nothing_fails(browser: Any, file: Path) -> None:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    own = ("data:", "chrome:")  # pictures inside the page; the empty page that the browser starts with
    assert {url for url in asked if not url.startswith(own)} == {file.as_uri()}
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_fits_its_window(browser: Any, width: int) -> None:
    resize(browser, width)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    scroll = """
    document.getElementById("fedagrac-table6").scrollIntoView();
    return document.querySelector("nav").getBoundingClientRect().top
    """
    assert browser.execute_script(scroll) == 0, "contents stay in sight"


def test_keyboard_and_screen_reader(browser: Any) -> None:
    script = """
    const one = s => document.querySelectorAll(s).length;
    return [one("main"), one("nav[aria-label]"), one("h1"), one("img:not([alt])"), one("figure:not(:has(figcaption))"),
      one("th:not([scope])"), one("svg:not([aria-label])"), one("input:not(label input), select:not(label select)"),
      one(".wide:not([tabindex])"), document.documentElement.lang]
    """
    assert browser.execute_script(script) == [1, 1, 1, 0, 0, 0, 0, 0, 0, "en"]
    alts = browser.execute_script("return [...document.images].map(e => e.alt)")
    assert len(set(alts)) == len(alts) > 20
    assert all(len(alt) > 20 for alt in alts)


def test_dark_and_print(browser: Any) -> None:
    colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    light = browser.execute_script(colours)
    resize(browser, 1280, scheme="dark")
    assert browser.execute_script(colours) != light
    resize(browser, 720, media="print", scheme="dark")
    assert browser.execute_script(colours)[1] == "rgb(255, 255, 255)"
    chip = "return getComputedStyle(document.querySelector('.v.supported')).backgroundColor"
    assert browser.execute_script(chip) == "rgb(217, 240, 225)", "paper is light"
    assert visible(browser, "nav") == []
    clipped = (
        "return [...document.querySelectorAll('.wide')].filter(e => getComputedStyle(e).overflowX !== 'visible').length"
    )
    assert browser.execute_script(clipped) == 0
    over = """
    return [...document.querySelectorAll(".claims > li")].filter(e => {
      const [chip, text] = [e.querySelector(".v, .soft"), e.children[1]].map(part => part.getBoundingClientRect());
      return chip.right > text.left && chip.bottom > text.top;
    }).length
    """
    assert browser.execute_script(over) == 0, "no chip stands on text"
