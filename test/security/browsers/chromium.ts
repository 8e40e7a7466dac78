/** Debian's chromium, driven by playwright-core. */
import type { Browser, BrowserContext, CDPSession, Page } from "playwright-core"
import { launchBrowser } from "../../e2e/browser/browser.ts"
import { type BrowserTab, observer, type Sighting, sightingOf, type TestBrowser } from "./tab.ts"

class ChromiumTab implements BrowserTab {
  private readonly page: Page
  private readonly devtools: CDPSession
  private readonly seen: Array<Sighting>
  /** The loaders of the documents that are loaded, and who waits for one. */
  private readonly loaded = new Set<string>()
  private onLoad = (): void => {}

  constructor(page: Page, devtools: CDPSession, seen: Array<Sighting>) {
    this.page = page
    this.devtools = devtools
    this.seen = seen
    page.on("dialog", (dialog) => {
      seen.push({ kind: "dialog", text: dialog.message() })
      // It may have gone with its page.
      dialog.dismiss().catch(() => undefined)
    })
    devtools.on("Page.lifecycleEvent", ({ loaderId, name }) => {
      if (name !== "load") return
      this.loaded.add(loaderId)
      this.onLoad()
    })
  }

  /** By the protocol of the browser: playwright takes the error page of a file for a failure. */
  async visit(url: string): Promise<void> {
    const { errorText, loaderId } = await this.devtools.send("Page.navigate", { url })
    // A file that is saved is no document.
    if (errorText !== undefined || loaderId === undefined) return
    await new Promise<void>((resolve) => {
      this.onLoad = () => {
        if (this.loaded.delete(loaderId)) resolve()
      }
      this.onLoad()
    })
  }

  show(): Promise<void> {
    return this.page.bringToFront()
  }

  evaluate(expression: string): Promise<unknown> {
    return this.page.evaluate(expression)
  }

  sightings(): ReadonlyArray<Sighting> {
    return this.seen.splice(0)
  }
}

class Chromium implements TestBrowser {
  private readonly browser: Browser

  constructor(browser: Browser) {
    this.browser = browser
  }

  async openTab(): Promise<BrowserTab> {
    const context: BrowserContext = await this.browser.newContext({ acceptDownloads: false })
    const seen: Array<Sighting> = []
    await context.exposeBinding("reportToTest", (_, text) => {
      seen.push(sightingOf(String(text)))
    })
    await context.addInitScript(`(${observer})((text) => globalThis.reportToTest(text))`)
    const page = await context.newPage()
    const devtools = await context.newCDPSession(page)
    await devtools.send("Page.enable")
    await devtools.send("Page.setLifecycleEventsEnabled", { enabled: true })
    return new ChromiumTab(page, devtools, seen)
  }

  close(): Promise<void> {
    return this.browser.close()
  }
}

/** Features that start processes, of which a busy machine has too many already. */
const withoutFeatures = [
  "BackForwardCache",
  "IsolateSandboxedIframes",
  "ProactivelySwapBrowsingInstance",
  "SpareRendererForSitePerProcess"
]

export const startChromium = async (): Promise<TestBrowser> =>
  new Chromium(
    await launchBrowser(
      "--renderer-process-limit=2",
      `--disable-features=${withoutFeatures.join(",")}`
    )
  )
