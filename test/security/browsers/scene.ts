/** A service full of hostile deposits, with the servers around it, and what a browser did there. */
import { send } from "../../e2e/client.ts"
import { eventually, start } from "../../e2e/process.ts"
import { Depositor, type Shown } from "./deposits.ts"
import { EmbeddingPages } from "./embedding.ts"
import { Marks } from "./marks.ts"
import type { OpenApi } from "./representations.ts"
import { Beacons, Front, LocalServer } from "./servers.ts"
import type { BrowserTab } from "./tab.ts"
import { Unprotected } from "./unprotected-server.ts"

const beaconsWithinMs = 60_000

/** Refuses with a problem whose texts are hostile. */
const hostileRecipient = (marks: Marks): Promise<LocalServer> =>
  LocalServer.listen((_, response) => {
    const text = marks.of("the problem of a recipient").text(400)
    const reason = text.replaceAll(/[^\x20-\x7e]/g, "").slice(0, 100)
    response.writeHead(410, reason, { "content-type": "application/problem+json" })
    response.end(JSON.stringify({ title: text, detail: text, status: 410 }))
  })

export interface Scene {
  readonly front: Front
  readonly marks: Marks
  readonly pages: EmbeddingPages
  readonly unprotected: Unprotected
  readonly depositor: Depositor
  readonly document: OpenApi
  readonly shown: Shown
  /**
   * What scripts and parts of documents reached since the last call: the fields that they came by.
   * Loads the unprotected documents last, and waits until they have acted: what other documents
   * began before them has then arrived, too.
   */
  readonly actsIn: (tab: BrowserTab) => Promise<ReadonlyArray<string>>
  readonly close: () => void
}

/** The fields that the requests at the beacons came by. */
const labelsOf = (marks: Marks, hits: ReadonlyArray<string>): ReadonlyArray<string> =>
  hits.map((hit) => marks.labelOf(Number(/^\/(\d+)/.exec(hit)?.[1])))

export const setScene = async (): Promise<Scene> => {
  const beacons = await Beacons.listen()
  const marks = new Marks(beacons.origin)
  const front = await Front.listen()
  const pages = await EmbeddingPages.listen()
  const unprotected = await Unprotected.listen(marks)
  const recipient = await hostileRecipient(marks)
  const env = { BASE_URL: front.origin, OUTBOUND_ALLOW: "127.0.0.0/8" }
  const service = await start({ env })
  front.serve(service.port)
  const depositor = new Depositor(service.url, front.origin, marks)
  const shown = await depositor.deposit(recipient.originAs("127.0.0.1"))
  const described = await send(service.url, "/openapi.json")
  return {
    front,
    marks,
    pages,
    unprotected,
    depositor,
    // The suites of HTTP check its shape.
    document: JSON.parse(described.text) as OpenApi,
    shown,
    actsIn: async (tab) => {
      const seen = new Set<string>()
      for (const uri of unprotected.uris) await tab.visit(uri)
      await tab.visit(pages.pageOf("foreign", unprotected.uris))
      await eventually(beaconsWithinMs, "the unprotected documents act", () => {
        for (const label of labelsOf(marks, beacons.taken())) seen.add(label)
        return unprotected.acts.every((act) => seen.has(act)) ? true : undefined
      })
      tab.sightings()
      return [...seen].filter((label) => !label.startsWith("unprotected ")).toSorted()
    },
    close: () => {
      for (const server of [beacons, front, pages, unprotected, recipient]) server.close()
    }
  }
}
