"""The page in a real browser: curves answer, switches switch, nothing is fetched, nothing errs."""

import shutil
import time

import pytest

pytestmark = pytest.mark.slow

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1200,900",
)  # fmt: skip

# Everything below an element, through shadow roots as well.
TEXT_OF_TOOLTIPS = """
const found = [];
function look(node) {
  if (node.shadowRoot) look(node.shadowRoot);
  for (const child of node.children || []) {
    if (/bk-Tooltip/.test(child.className)) {
      const root = child.shadowRoot || child;
      const style = getComputedStyle(child);
      if (style.display !== "none") found.push(root.textContent);
    }
    look(child);
  }
}
look(document.body);
return found.join(" ");
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
def page(browser, smoke, eventually):
    """The small report, opened, with its first chart in view."""
    browser.get(f"file://{smoke / 'report.html'}")
    eventually(lambda: shown(browser), timeout=30, what="a chart")
    browser.execute_script("document.querySelector('[data-chart]').scrollIntoView()")
    time.sleep(0.5)  # Bokeh draws on the next frames
    return browser


def shown(browser):
    """What the first chart says it shows: measure, scale, strategies."""
    return browser.execute_script("return document.querySelector('[data-chart]').dataset.shown")


def find(browser, selector):
    return browser.find_element("css selector", f"[data-chart] {selector}")


def test_page_opens_without_an_error_and_asks_nobody(page):
    assert [e for e in page.get_log("browser") if e["level"] in {"SEVERE", "WARNING"}] == []
    asked = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == []


def test_pointing_at_a_curve_shows_its_values(page, eventually):
    from selenium.webdriver.common.action_chains import ActionChains

    chart = find(page, "#chart-diabetes")
    width = chart.size["width"]

    def hovered():
        for share in (0.2, 0.35, 0.5, 0.65):
            place = int((share - 0.5) * width), 0  # from the middle
            ActionChains(page).move_to_element_with_offset(chart, *place).perform()
            time.sleep(0.2)
            text = page.execute_script(TEXT_OF_TOOLTIPS)
            if "round" in text:
                return text
        return ""

    text = eventually(hovered, timeout=30, what="a tooltip")
    assert "mean" in text
    assert any(name in text for name in ("Unit", "Relaxed", "Adaptive"))


def test_switches_change_measure_scale_and_strategies(page):
    assert shown(page) == "mce_test log unit relaxed adaptive"
    before = drawn(page)
    find(page, ".log").click()
    assert shown(page) == "mce_test linear unit relaxed adaptive"
    find(page, ".strategy[value=relaxed]").click()
    assert shown(page) == "mce_test linear unit adaptive"
    assert drawn(page) != before
    find(page, ".measure option[value=gap]").click()
    assert shown(page).startswith("gap linear")
    find(page, ".measure option[value=mce2_debiased_test]").click()
    assert not find(page, ".log").is_enabled()  # it may be negative


def drawn(page):
    """Which of the two figures is visible, and which of its curves."""
    return page.execute_script(
        """
        const doc = Bokeh.documents[0];
        return ["linear", "log"].map((scale) => {
          const plot = doc.get_model_by_name(scale + "/diabetes");
          return [plot.visible, plot.renderers.map((r) => r.visible), plot.left[0].axis_label];
        });
        """
    )


def test_page_fits_a_phone(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_curves_are_painted_in_the_colours_of_the_page_by_night(page):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    colour = page.execute_script(
        "return Bokeh.documents[0].get_model_by_name('log/diabetes').background_fill_color"
    )
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert colour == "#14181d"
