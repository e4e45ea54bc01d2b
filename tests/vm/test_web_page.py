"""The page of `ringside web` in a real Chromium: a guest is traced from it, numbers on it are the guest's, names with
markup stay text, errors stand at their line, and it can be used by keyboard and by a screen reader.

With RINGSIDE_SCREENSHOTS=FOLDER pictures of it, light and dark, are left there.
"""

import json
import os
import pathlib
import re
import tempfile
import time
import unittest

import guest
import ringside
from browser import Browser, needs_browser
from web import Server

READS = 1000
SHOWN_READS = 20
ENTER, TAB, RIGHT, LEFT, UP, CONTROL, NULL = "\ue007", "\ue004", "\ue014", "\ue012", "\ue013", "\ue009", "\ue000"
MARKUP = "<img src=x onerror=window.hacked=1>"
PROGRAM = f"""BEGIN {{ printf("tracing\\n"); }}
syscall::read:return /execname == "workload" && arg1 == 7/ {{ @reads[execname] = count(); @sizes = quantize(arg1); }}
fbt::vfs_read:entry /execname == "workload"/ {{ @stacks[stack()] = count(); }}
syscall::read:return /execname == "workload" && arg1 == 7 && n++ < {SHOWN_READS}/ {{ trace(arg1); }}
"""
# The cells of a table's first row.
FIRST_ROW = """const table = document.querySelector(`table[aria-label="${arguments[0]}"]`);
return table?.tBodies[0].rows.length ? [...table.tBodies[0].rows[0].cells].map((cell) => cell.textContent) : null;"""
CHOOSE = """const select = document.querySelector(`select[aria-label="${arguments[0]}"]`);
if (![...select?.options ?? []].some((option) => option.value === arguments[1])) return false;
select.value = arguments[1]; select.dispatchEvent(new Event("change")); return true;"""
TOLD = "return document.querySelector('article figcaption')?.textContent ?? ''"


def open_page(browser, server):
    """Shows the server's page, once it is connected."""
    browser.open(server.address)
    browser.wait_for("return document.getElementById('status').textContent === 'connected'")


def run_program(browser, d):
    """Writes a program into the page and starts it by the keyboard."""
    browser.execute("document.getElementById('d').value = arguments[0]", d)
    browser.type("#d", CONTROL + ENTER + NULL)


def shot(browser, name):
    """Leaves a picture in both colours where they are wanted."""
    if folder := os.environ.get("RINGSIDE_SCREENSHOTS"):
        for scheme in ("light", "dark"):
            browser.colours(scheme)
            time.sleep(0.7)  # charts take new colours when they are drawn next
            browser.screenshot(pathlib.Path(folder, f"{name}-{scheme}.png"))


class OnePage(unittest.TestCase):
    """The parts that the tests of both kinds have in common."""

    def opened(self, server):
        """A browser that shows the server's page."""
        browser = self.enterContext(Browser())
        open_page(browser, server)
        self.assertNotIn("token", browser.execute("return location.href"))
        return browser

    def check_clean(self, browser):
        """Nothing was refused by the policy, no script failed, and no markup of a guest came alive."""
        self.assertEqual([each["message"] for each in browser.log() if each["level"] == "SEVERE"], [])
        self.assertIsNone(browser.execute("return window.hacked ?? null"))
        self.assertEqual(browser.execute("return document.querySelectorAll('img, script:not([src])').length"), 0)


@needs_browser
class Page(OnePage):
    """Programs without a guest."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server())

    def test_an_error_stands_at_its_line_and_is_announced(self):
        browser = self.opened(self.server)
        run_program(browser, "BEGIN { }\nBEGIN { nothing(); }\n")
        wrong = browser.wait_for("return document.querySelector('pre .wrong')?.textContent")
        self.assertIn("BEGIN { nothing(); }", wrong)
        self.assertIn("nothing", browser.execute("return document.querySelector('[role=alert].error:not(:empty)').textContent"))
        browser.wait_for("return document.querySelector('article [role=status]').textContent === 'ended with status 1'")
        shot(browser, "error")
        self.check_clean(browser)

    def test_markup_stays_text(self):
        browser = self.opened(self.server)
        program = f'BEGIN {{ printf("{MARKUP}"); @["{MARKUP}"] = count(); exit(0); }}'
        run_program(browser, program)
        self.assertEqual(browser.wait_for(FIRST_ROW, "@_"), [MARKUP, "1"])
        self.assertEqual(browser.wait_for(FIRST_ROW, "records")[-1], MARKUP)
        self.check_clean(browser)

    def test_tables_are_sorted_and_filtered(self):
        browser = self.opened(self.server)
        run_program(browser, 'BEGIN { for (this->i = 0; this->i < 900; this->i++) { @k[this->i] = sum(this->i * 2); } exit(0); }')
        self.assertEqual(browser.wait_for(FIRST_ROW, "@k"), ["899", "1,798"])
        browser.click("table[aria-label='@k'] th:first-child button")
        self.assertEqual(browser.wait_for(FIRST_ROW, "@k"), ["0", "0"])
        browser.type("input[aria-label='filter @k']", "45")
        self.assertEqual(browser.wait_for(FIRST_ROW, "@k"), ["45", "90"])
        self.assertEqual(browser.execute("return document.querySelector(\"table[aria-label='@k'] th\").getAttribute('aria-sort')"),
                         "ascending")
        self.check_clean(browser)

    def test_records_pause_and_go_on(self):
        browser = self.opened(self.server)
        run_program(browser, 'tick-20ms { printf("n %d", n++); }')
        count = "return document.querySelector(\"table[aria-label='records']\")?.tBodies[0].lastChild?.textContent ?? ''"
        browser.wait_for(count)
        browser.execute("[...document.querySelectorAll('article button')].find((each) => each.textContent === 'Pause').click()")
        stands = browser.execute(count)
        noted = browser.execute("return document.querySelector('article section:last-child .note').textContent")
        browser.wait_for("return document.querySelector('article section:last-child .note').textContent !== arguments[0]", noted)
        self.assertEqual(browser.execute(count), stands)
        browser.execute("[...document.querySelectorAll('article button')].find((each) => each.textContent === 'Go on').click()")
        browser.wait_for(count.replace("return ", "return (") + ") !== arguments[0]", stands)
        self.check_clean(browser)

    def test_a_closed_page_ends_its_programs(self):
        browser = self.opened(self.server)
        run_program(browser, 'BEGIN { printf("tracing"); } tick-1s { }')
        browser.wait_for(FIRST_ROW, "records")
        self.assertEqual(len(self.server.programs()), 1)
        browser.open("about:blank")
        deadline = time.monotonic() + ringside.TIMEOUT
        while self.server.programs():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_each_control_has_a_name_and_the_keyboard_reaches_it(self):
        browser = self.opened(self.server)
        run_program(browser, 'BEGIN { @q = quantize(7); @c = count(); trace(7); } tick-1s { @q = quantize(9); }')
        browser.wait_for(FIRST_ROW, "@q")
        tree = browser.devtools("Accessibility.getFullAXTree")["nodes"]
        roles = {"button", "textbox", "searchbox", "combobox", "checkbox", "link", "table", "region", "img", "application"}
        nameless = [node["role"]["value"] for node in tree if not node.get("ignored") and node["role"]["value"] in roles
                    and not node.get("name", {}).get("value")]
        self.assertEqual(nameless, [])
        self.assertIn("heading", {node["role"]["value"] for node in tree if "role" in node})
        controls = "button, input, select, textarea, a[href], [tabindex='0']"
        wanted = browser.execute(f"return [...document.querySelectorAll({json.dumps(controls)})].filter((each) => !each.disabled "
                                 "&& each.checkVisibility()).length")
        browser.execute("document.activeElement.blur()")
        reached = set()
        for _ in range(wanted + 5):
            browser.send("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
                {"type": "keyDown", "value": TAB}, {"type": "keyUp", "value": TAB}]}]})
            reached.add(browser.execute("return [...document.querySelectorAll('*')].indexOf(document.activeElement)"))
        self.assertGreaterEqual(len(reached), wanted)


@needs_browser
class Guest(OnePage):
    """A guest that is traced from the page."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ringside-web-guest-"))
        machine = guest.Guest("debian-6.12", cpus=2, append=guest.PATIENT, options=[
            "-name", "web<b>1", "-qmp", f"unix:{folder}/qmp,server=on,wait=off"])
        cls.port = cls.enterClassContext(machine)
        cls.server = cls.enterClassContext(Server(f"qmp:{folder}/qmp"))

    def test_the_page_shows_the_guests_numbers(self):
        self.port.run(f"cp /bin/busybox '/tmp/{MARKUP}'; exec -a '{MARKUP}' sleep 1000 &")
        browser = self.opened(self.server)
        why = browser.wait_for("return [...document.querySelectorAll('#machines tbody td')].map((each) => each.textContent)"
                               ".find((text) => text.includes('hang') || text.includes('CPU') || text.includes('nothing'))")
        self.assertTrue(why)
        self.assertTrue(browser.execute("return document.querySelector('#machines input').checked"), "it is the only one")
        run_program(browser, PROGRAM)
        browser.wait_for("return document.querySelector('table[aria-label=records]')?.textContent.includes('tracing')")
        status, said = self.port.run(f"workload --reads {READS} --read-size 7")
        self.assertEqual(status, 0, said)
        browser.wait_for("return document.querySelector(\"table[aria-label='@reads']\")?.textContent.includes('1,000')")
        self.assertEqual(browser.wait_for(FIRST_ROW, "@reads"), ["workload", "1,000"])
        shot(browser, "tables")
        self.check_charts(browser)
        self.check_heat_map(browser)
        self.check_machine(browser)
        self.check_saved(browser)
        self.check_clean(browser)

    def check_charts(self, browser):
        self.assertTrue(browser.execute(CHOOSE, "view of @reads", "lines"))
        self.assertTrue(browser.execute(CHOOSE, "values of @reads are drawn as", "value"))
        legend = browser.wait_for("return document.querySelector('article ul.legend')?.textContent")
        self.assertRegex(legend, r"workload: 1,000$")
        self.assertTrue(browser.execute(CHOOSE, "view of @stacks", "flame"))
        browser.wait_for("return document.querySelector('iframe') !== null")
        self.assertFalse(browser.execute("return document.querySelector('pre .wrong') !== null"), "no line of it is wrong")
        shot(browser, "charts")

    def check_heat_map(self, browser):
        """The cells of the sizes, asked by the keyboard from the last one on, have all values and the records behind them."""
        self.assertTrue(browser.execute(CHOOSE, "view of @sizes", "heat"))
        browser.execute("document.querySelector('article canvas').focus()")
        values = records = 0
        for key in ["", *[LEFT] * 119]:
            browser.type("article canvas", key + ENTER)
            told = browser.execute(TOLD)
            found = re.search(r": ([\d,]+) values; ([\d,]+) records behind it", told)
            self.assertTrue(found, told)
            here, behind = (int(number.replace(",", "")) for number in found.groups())
            values += here
            records += behind if here else 0
            if values >= READS:
                break
        self.assertEqual(values, READS)
        self.assertGreaterEqual(records, SHOWN_READS)
        self.assertIn("4 and more", told)
        shot(browser, "heat")

    def check_machine(self, browser):
        browser.click("#machines tbody button")
        processes = browser.wait_for("return document.querySelector('#machine-body table')?.textContent")
        self.assertIn("/bin/console", processes)
        self.assertEqual(browser.text("#machine-title"), "web_b_1")
        for name in ("Why", "Log"):
            browser.execute("[...document.querySelectorAll('#machine-lists button')].find((each) => each.textContent === "
                            "arguments[0]).click()", name)
            browser.wait_for("return document.getElementById('machine-note').textContent !== 'looking'")
        self.assertIn("Linux version", browser.execute("return document.getElementById('machine-body').textContent"))
        shot(browser, "machine")

    def check_saved(self, browser):
        """The saved JSON has the counts; the HTML file has them in a table, and no script."""
        browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=browser.downloads)
        for label in ("JSON", "HTML"):
            browser.execute("[...document.querySelectorAll('article > div > section:first-child button')]"
                            ".find((each) => each.textContent === arguments[0]).click()", label)
        saved = {}
        deadline = time.monotonic() + ringside.TIMEOUT
        while len(saved) < 2:
            self.assertLess(time.monotonic(), deadline, os.listdir(browser.downloads))
            saved = {path.suffix: path.read_text() for path in pathlib.Path(browser.downloads).iterdir()
                     if path.suffix in (".json", ".html")}
            time.sleep(0.1)
        entry, = json.loads(saved[".json"])["entries"]
        self.assertEqual((entry["keys"], entry["count"]), (["workload"], READS))
        self.assertIn("1,000", saved[".html"])
        self.assertNotIn("<script", saved[".html"])
        self.assertIn("<style>", saved[".html"])
        self.assertRegex(saved[".html"], r"<title>@reads count: BEGIN \{ printf\(.*</title>")


if __name__ == "__main__":
    unittest.main()
