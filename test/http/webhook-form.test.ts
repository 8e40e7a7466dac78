/** The form of a mailbox's page by which its owner changes the settings of webhooks. */
import { createHmac } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { descriptions, type Mailboxes, owner, startMailboxes } from "./mailbox-harness.ts"

let service: Mailboxes

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

const secret = "0123456789abcdef"

const open = async (name: string, settings = "") => {
  const { href } = await service.open(name, settings)
  const save = (fields: Readonly<Record<string, string>>, basic = owner) =>
    service.send("POST", `${href}/webhooks`, {
      basic,
      accept: "text/html",
      type: "application/x-www-form-urlencoded",
      body: new URLSearchParams(fields).toString()
    })
  const document = async () => (await service.send("GET", href, { basic: owner })).text
  const page = async () =>
    (await service.send("GET", href, { basic: owner, accept: "text/html" })).text
  const post = (body: string, headers = {}) =>
    service.send("POST", href, { body, type: "application/json", headers })
  return { href, save, document, page, post }
}

describe("the form of webhooks", () => {
  it("leads to the recipes", async () => {
    const { page } = await open("recipes")
    const [, form = ""] = /<summary>Webhooks<\/summary>(.*?)<\/details>/s.exec(await page()) ?? []
    expect(form).toMatch(/<a href="\/docs\/how-to\/recipes#grafana-[^"]+">/)
  })

  it("is offered for the known senders where a mailbox is opened", async () => {
    const page = await service.send("GET", "/mailboxes", { basic: owner, accept: "text/html" })
    const [, list = ""] = /<select id="open-webhook" name="webhook"[^>]*>(.*?)<\/select>/s
      .exec(page.text) ?? []
    expect([...list.matchAll(/<option value="([^"]*)"[^>]*>([^<]*)/g)].map(([, ...one]) => one))
      .toEqual([
        ["", "none"],
        ["alertmanager", "Alertmanager"],
        ["github", "GitHub"],
        ["grafana", "Grafana"],
        ["stripe", "Stripe"]
      ])
    const open = (webhook: string) =>
      service.send("POST", "/mailboxes", {
        basic: owner,
        type: "application/x-www-form-urlencoded",
        body: new URLSearchParams({ webhook }).toString()
      })
    for (const [webhook, stored] of [["github", "github"], ["", undefined], ["{/a}", "{/a}"]]) {
      const opened = await open(webhook ?? "")
      expect([opened.status, opened.child("webhook")]).toEqual([201, stored])
    }
  })

  it("chooses the templates of a sender, and replaces some of them", async () => {
    const { document, href, page, post, save } = await open(
      "chosen",
      "<title>Ops</title><retention>P7D</retention>"
    )
    const shown = await page()
    expect(shown).toContain("action=\"/mailboxes/chosen/webhooks\"")
    for (const sender of ["alertmanager", "github", "grafana", "stripe"]) {
      expect(shown).toContain(`<option value="${sender}">`)
    }
    const saved = await save({ sender: "grafana", webhook: "", "webhook-tags": "x,{/status}" })
    expect([saved.status, saved.header("location")]).toEqual([303, `${href}?read=`])
    expect(await document()).toContain("<webhook>grafana</webhook>")
    expect(await document()).toContain("<webhook-tags>x,{/status}</webhook-tags>")
    // The other settings stay as they are.
    expect(await document()).toContain("<retention>P7D</retention>")
    expect(await document()).toContain("title=\"Ops\"")
    expect(await page()).toContain("<option value=\"grafana\" selected>")
    expect((await post("{\"title\":\"It burns\"}")).status).toBe(202)
    const listing = await service.send("GET", href, { basic: owner })
    expect(descriptions(listing)).toEqual(["It burns"])
  })

  it("writes own templates, shows them again, and ends webhooks", async () => {
    const { document, page, post, save } = await open("own", "<webhook>github</webhook>")
    await save({ sender: "", webhook: "{/a|/b} \"now\"", "webhook-priority": "{/level}" })
    expect(await document()).toContain("<webhook-priority>{/level}</webhook-priority>")
    expect(await page()).toContain("value=\"{/a|/b} &quot;now&quot;\"")
    expect((await save({ sender: "" })).status).toBe(303)
    expect(await document()).not.toContain("<webhook")
    expect((await post("{\"a\":1}")).status).toBe(422)
  })

  it("sets and removes the secret, and never shows it", async () => {
    const { page, post, save } = await open("secret")
    expect(await page()).not.toContain("name=\"unsigned\"")
    expect((await save({ sender: "github", secret })).status).toBe(303)
    expect(await page()).not.toContain(secret)
    expect(await page()).toContain("name=\"unsigned\"")
    const body = "{\"zen\":\"Speak like a human.\"}"
    expect((await post(body)).status).toBe(403)
    const signature = createHmac("sha256", secret).update(body).digest("hex")
    expect((await post(body, { "X-Hub-Signature-256": `sha256=${signature}` })).status).toBe(202)
    // An empty field keeps the secret.
    expect((await save({ sender: "grafana", secret: "" })).status).toBe(303)
    expect((await post(body)).status).toBe(403)
    expect((await save({ sender: "grafana", unsigned: "true" })).status).toBe(303)
    expect((await post(body)).status).toBe(202)
  })

  it("chooses a sender in place of the description that the form has shown", async () => {
    const { document, save } = await open("chosen-later", "<webhook>Build {/title}</webhook>")
    const saved = await save({ sender: "grafana", webhook: "Build {/title}" })
    expect(saved.status).toBe(303)
    expect(await document()).toContain("<webhook>grafana</webhook>")
  })

  it("shows a fault beside its field, with what was typed but no secret", async () => {
    const { document, save } = await open("faults")
    const faults: ReadonlyArray<readonly [Readonly<Record<string, string>>, string, string]> = [
      [{ webhook: "{title}" }, "webhook", "“Description” has a brace outside a pointer"],
      [{ "webhook-link": "}" }, "webhook-link", "“Link” has a brace outside a pointer"],
      [{ "webhook-tags": "x".repeat(1025) }, "webhook-tags", "“Tags” may have 1024"],
      [{ sender: "other" }, "sender", "“Sender” must be one of"],
      [{ sender: "github", webhook: "{/a}" }, "webhook", "“Description” must be empty"],
      [
        { webhook: "{/a}", secret: "short" },
        "secret",
        "“New secret for signatures” must have 8 to 256"
      ],
      [{ secret, unsigned: "true" }, "secret", "“New secret for signatures” must be empty"]
    ]
    for (const [fields, name, fault] of faults) {
      const answer = await save(fields)
      expect(answer.status, fault).toBe(422)
      expect(answer.text).toMatch(
        new RegExp(`id="webhooks-${name}-fault" class="fault">✗ ${fault}`)
      )
      expect(answer.text).not.toContain(secret)
      expect(answer.text).not.toContain("value=\"short\"")
    }
    expect((await save({ webhook: "{title}", "webhook-tags": "kept" })).text)
      .toContain("value=\"kept\"")
    expect(await document()).not.toContain("<webhook")
  })

  it("is for the owner alone", async () => {
    const { href, save } = await open("others")
    expect((await save({ sender: "github" }, service.bob)).status).toBe(403)
    const page = await service.send("GET", `${href}?read=`, {
      basic: service.bob,
      accept: "text/html"
    })
    expect(page.text).not.toContain("/webhooks")
  })
})
