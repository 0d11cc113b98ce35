"""Opens a report page from disk in headless Chromium, with every request but files refused, and uses it as a reader would.

usage: browse.py PAGE [FOLDER for screenshots]      prints "fine" or what is wrong, one line each
"""
import json
import pathlib
import shutil
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

page = pathlib.Path(sys.argv[1]).resolve()
shots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
wrong = []


def check(holds, what):
    if not holds:
        wrong.append(what)


profile = tempfile.TemporaryDirectory()
options = webdriver.ChromeOptions()
for flag in ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", "--proxy-server=127.0.0.1:9", "--user-data-dir=" + profile.name]:
    options.add_argument(flag)
options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def window(width, height=900):
    # The size of what is seen, also below the narrowest window that the system would give.
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})


def dark(on):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]})


def focused():
    return browser.switch_to.active_element


try:
    window(1280)
    browser.get(page.as_uri())

    charts = browser.find_elements(By.CSS_SELECTOR, "figure.chart")
    for chart in charts:
        title = chart.find_element(By.TAG_NAME, "b").text
        lines = chart.find_elements(By.CSS_SELECTOR, ".plot > svg path.line")
        drawn = [line for line in lines if (line.get_attribute("d") or "").count(",") > 1 or "A" in (line.get_attribute("d") or "")]
        marks = chart.find_elements(By.CSS_SELECTOR, ".plot > svg path.mark")
        check(drawn or marks, f"the chart {title!r} is empty")
        ticks = [tick.text for tick in chart.find_elements(By.CSS_SELECTOR, ".axes .tick text")]
        check(len(ticks) >= 4, f"the chart {title!r} has the ticks {ticks}")
        for path in lines + marks:
            check("NaN" not in (path.get_attribute("d") or "") + (path.get_attribute("transform") or ""), f"the chart {title!r} draws NaN")

    # The keyboard goes from point to point of a chart, and shows its values.
    plots = [plot for plot in browser.find_elements(By.CSS_SELECTOR, ".plot") if plot.is_displayed()]
    if plots:
        browser.execute_script("arguments[0].focus()", plots[0])
        focused().send_keys(Keys.HOME)
        first = plots[0].find_element(By.CSS_SELECTOR, ".tip").text
        focused().send_keys(Keys.END)
        last = plots[0].find_element(By.CSS_SELECTOR, ".tip").text
        check(first and last, "arrow keys show no values in a chart")
        legend = plots[0].find_element(By.XPATH, "..").find_elements(By.CSS_SELECTOR, ".legend button")
        if legend:
            before = len(plots[0].find_elements(By.CSS_SELECTOR, "path.line"))
            legend[0].click()
            check(len(plots[0].find_elements(By.CSS_SELECTOR, "path.line")) < before, "a line of the legend is not hidden by a click")
            legend[0].click()
            check(len(plots[0].find_elements(By.CSS_SELECTOR, "path.line")) == before, "a line of the legend does not come back")

    # A head opens its panel by a click, and by keyboard alone.
    cells = browser.find_elements(By.CSS_SELECTOR, "table.map td a")
    if cells:
        cells[0].click()
        panel = browser.find_element(By.CSS_SELECTOR, "aside.panel")
        name = cells[0].get_attribute("href").split("#head-")[1]
        check(panel.is_displayed(), "a click on a head opens no panel")
        check(panel.find_element(By.TAG_NAME, "h3").text == name, "the panel is of another head")
        if browser.find_elements(By.CSS_SELECTOR, "script.attention"):
            check(panel.find_elements(By.CSS_SELECTOR, "rect.weight"), "the panel shows no attention")
            choices = panel.find_elements(By.TAG_NAME, "option")
            if len(choices) > 1:
                choices[1].click()
                check(panel.find_elements(By.CSS_SELECTOR, "rect.weight"), "another text shows no attention")
        focused().send_keys(Keys.ESCAPE)
        check(not panel.is_displayed(), "Escape does not close the panel")
        check(focused() == cells[0], "the focus does not come back to the head")
        focused().send_keys(Keys.ARROW_RIGHT)
        check(focused() != cells[0], "an arrow key does not go to the next head")
        focused().send_keys(Keys.ENTER)
        check(panel.is_displayed() and panel.find_element(By.TAG_NAME, "h3").text != name, "Enter does not open the next head")
        following = [button for button in panel.find_elements(By.TAG_NAME, "button") if button.text == "next"]
        shown = panel.find_element(By.TAG_NAME, "h3").text
        following[0].click()
        check(panel.find_element(By.TAG_NAME, "h3").text != shown, "next shows the same head")
        focused().send_keys(Keys.ESCAPE)

    # Sorting and filtering the table of heads.
    sorts = browser.find_elements(By.CSS_SELECTOR, "#heads thead button")
    if len(sorts) > 1:
        keys = lambda: [row.find_elements(By.CSS_SELECTOR, "th, td")[1].get_attribute("data-key") for row in browser.find_elements(By.CSS_SELECTOR, "#heads tbody tr")]
        numbers = lambda: [float(key) for key in keys() if key not in (None, "", "nan")]
        sorts[1].click()
        check(numbers() == sorted(numbers()), "a click on a column does not sort upwards")
        sorts[1].click()
        check(numbers() == sorted(numbers(), reverse=True), "a second click does not sort downwards")
    searches = browser.find_elements(By.CSS_SELECTOR, "#heads .filter input")
    if searches:
        rows = browser.find_elements(By.CSS_SELECTOR, "#heads tbody tr")
        searches[0].send_keys("enc.self.0")
        left = [row for row in rows if row.is_displayed()]
        check(left and len(left) < len(rows) and all("enc.self.0" in row.text for row in left), "the filter does not leave the rows of enc.self.0")
        searches[0].clear()
        searches[0].send_keys(Keys.BACKSPACE)

    # What the tab key can reach, from the top of the page to its end.
    browser.refresh()
    reached = set()
    for _ in range(400):
        focused().send_keys(Keys.TAB)
        element = focused()
        if element.tag_name == "body":
            break
        reached.add(element.id)
    wanted = browser.find_elements(By.CSS_SELECTOR, "nav a, .plot, #heads thead button, summary, .filter input")
    missed = [element for element in wanted if element.is_displayed() and element.id not in reached]
    check(not missed, f"the tab key does not reach {len(missed)} of {len(wanted)}, first {missed[0].get_attribute('outerHTML')[:80] if missed else ''}")

    for width in (1280, 800, 360):
        window(width)
        overflow = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(overflow <= 1, f"at {width} pixels the page is {overflow} wider than the window")
        for night in (False, True):
            dark(night)
            if shots:
                height = browser.execute_script("return document.documentElement.scrollHeight")
                window(width, min(int(height) + 20, 12000))
                browser.save_screenshot(str(shots / f"{page.parent.name}-{width}-{'dark' if night else 'light'}.png"))
                window(width)
        dark(False)

    for entry in browser.get_log("browser"):
        check(entry["level"] not in ("SEVERE", "WARNING"), "console: " + entry["message"])
    # Of the page alone: the tab that Chromium opens first asks its maker for things of its own.
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [one["params"] for one in sent if one["method"] == "Network.requestWillBeSent" and one["params"]["documentURL"].startswith("file:")]
    check(requests, "requests: none was seen, so that nothing is known of them")
    outside = [one["request"]["url"] for one in requests if not one["request"]["url"].startswith(("file:", "data:"))]
    check(not outside, "requests: " + " ".join(outside)[:300])
finally:
    browser.quit()
print("\n".join(wrong) if wrong else "fine")
