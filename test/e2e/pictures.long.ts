/**
 * The pictures of pages in the documentation. They are made into `test-results/pictures`; with
 * `PICTURES=1` also into `docs/pictures`, when the pages have changed.
 */
import type { Browser } from "playwright-core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { adminHeaders, launchBrowser } from "./browser/browser.ts"
import type { SamplePage } from "./browser/sample-page.ts"
import { createSamplePages } from "./browser/sample-pages.ts"
import { cleanUp, type Service, start } from "./process.ts"
import { closeReceivers } from "./receivers.ts"

/** Bytes of one picture. */
const bytesMax = 60_000

const quality = 0.82

const desk = { width: 1_120, height: 760, scale: 1 }
const phone = { width: 390, height: 640, scale: 2 }

/** The file of each picture, the page of the samples that it shows, and on which screen. */
const pictures = [
  { file: "mailbox", page: "mailbox", ...desk },
  { file: "sent", page: "sent", ...desk },
  { file: "mailbox-phone", page: "mailbox", ...phone }
]

const folders = [
  "../../test-results/pictures/",
  ...process.env["PICTURES"] === "1" ? ["../../docs/pictures/"] : []
].map((path) => fileURLToPath(new URL(path, import.meta.url)))

let service: Service
let browser: Browser
let base: string
let pages: ReadonlyArray<SamplePage>

beforeAll(async () => {
  const launching = launchBrowser()
  service = await start({ env: { BASE_URL: "", OUTBOUND_ALLOW: "127.0.0.0/8" } })
  base = `http://localhost:${service.port}`
  pages = await createSamplePages(base)
  browser = await launching
})

afterAll(async () => {
  await browser?.close()
  closeReceivers()
  cleanUp()
})

/** A PNG as WebP, which the browser encodes. */
const webpOf = async (png: Buffer): Promise<Buffer> => {
  const page = await browser.newPage()
  const base64 = await page.evaluate(`(async () => {
    const image = new Image()
    image.src = "data:image/png;base64,${png.toString("base64")}"
    await image.decode()
    const canvas = new OffscreenCanvas(image.width, image.height)
    canvas.getContext("2d", { alpha: false }).drawImage(image, 0, 0)
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: ${quality} })
    return btoa(Array.from(new Uint8Array(await blob.arrayBuffer()), (one) =>
      String.fromCharCode(one)).join(""))
  })()`)
  await page.close()
  return Buffer.from(String(base64), "base64")
}

it.each(pictures)("$file is a small picture of a page", async (picture) => {
  const { file, height, page: name, scale, width } = picture
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: scale,
    colorScheme: "light",
    extraHTTPHeaders: adminHeaders
  })
  const page = await context.newPage()
  await page.goto(base + (pages.find((one) => one.name === name)?.path ?? ""))
  await page.evaluate("document.fonts.ready.then(() => undefined)")
  const bytes = await webpOf(await page.screenshot())
  await context.close()
  expect(bytes.toString("latin1", 8, 12)).toBe("WEBP")
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(`${folder}${file}.webp`, bytes)
  }
  expect(bytes.length).toBeLessThan(bytesMax)
})
