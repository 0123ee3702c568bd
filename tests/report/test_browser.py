"""The page in a real browser: it fits its window, fetches nothing and keeps its colours."""

import shutil

import pytest

pytestmark = pytest.mark.slow

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip

OPEN_ALL = "for (const folded of document.querySelectorAll('details')) folded.open = true;"
# Elements that reach beyond the window, but for what scrolls by itself: enlarged pictures, commands
# and formulas.
TOO_WIDE = """
return [...document.querySelectorAll("main *")]
  .filter((e) => !e.closest(".zoom img, pre, math, .theorem p, .proof p"))
  .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => `${e.tagName} ${e.className}: ${e.textContent.trim().slice(0, 40)}`);
"""
CUT_TABLES = """
return [...document.querySelectorAll(".scroll")]
  .filter((e) => e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.textContent.trim().slice(0, 60));
"""
LUMINANCE = """
const rgb = getComputedStyle(document.querySelector(arguments[0]))[arguments[1]];
return rgb.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
"""


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (BROWSER and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, replication):
    """``opened(width, scheme)``: the page of a replication, everything unfolded."""

    def of(width, scheme="light"):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        browser.get(f"file://{replication / 'report.html'}")
        browser.execute_script(OPEN_ALL)
        return browser

    return of


def test_page_opens_without_an_error_and_asks_nobody(opened):
    page = opened(1280)
    assert [e for e in page.get_log("browser") if e["level"] in {"SEVERE", "WARNING"}] == []
    asked = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_window_and_no_table_is_cut(opened, width):
    page = opened(width)
    assert page.execute_script(CUT_TABLES) == []
    assert page.execute_script(TOO_WIDE) == []
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_first_screen_has_the_verdicts_and_the_findings(opened):
    page = opened(1280)
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    for what in (".findings", ".tiles"):
        assert page.execute_script(bottom, what) < 900
    tiles = page.find_elements("css selector", ".tile")
    assert len(tiles) == 21
    tiles[0].click()
    assert page.current_url.endswith("#claim-" + tiles[0].text)


def test_by_night_the_page_is_dark_and_figures_keep_their_colours(opened):
    page = opened(1280, "dark")
    assert page.execute_script(LUMINANCE, "body", "backgroundColor") < 60
    assert page.execute_script(LUMINANCE, "body", "color") > 200
    style = "return getComputedStyle(document.querySelector('.zoom img')).filter"
    assert "invert" not in page.execute_script(style)
    assert "hue" not in page.execute_script(style)
