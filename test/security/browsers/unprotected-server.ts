/**
 * A service that protects nobody: what the service under test keeps from running, runs here. So a
 * test that finds nothing there finds it here, in the same browser and after it.
 */
import type { Mark, Marks } from "./marks.ts"
import { hosts, LocalServer } from "./servers.ts"

interface Document {
  readonly type: string
  readonly bodyOf: (mark: Mark) => string
  /** The destinations for which a browser runs it, or follows what it refers to. */
  readonly actsFor: ReadonlyArray<string>
}

const frames = ["document", "embed", "iframe"]

const listing = (inner: string) =>
  `<mailbox href="/m"><notification>${inner}</notification></mailbox>`

const documents: Readonly<Record<string, Document>> = {
  html: {
    type: "text/html",
    // Not the whole text, by which the page would leave itself.
    bodyOf: (mark) => `<!DOCTYPE html><p>${mark.text(200)}</p>`,
    actsFor: frames
  },
  xml: {
    type: "application/xml",
    bodyOf: ({ code }) =>
      listing(`<h:script xmlns:h="http://www.w3.org/1999/xhtml">${code}</h:script>`),
    actsFor: frames
  },
  svg: {
    type: "image/svg+xml",
    bodyOf: ({ code }) => `<svg xmlns="http://www.w3.org/2000/svg"><script>${code}</script></svg>`,
    actsFor: frames
  },
  script: { type: "text/javascript", bodyOf: ({ code }) => code, actsFor: ["script"] },
  style: {
    type: "text/css",
    bodyOf: ({ beacon }) => `@import "${beacon}";`,
    actsFor: ["style"]
  }
}

export class Unprotected {
  /** What acts when all documents are opened, and are parts of a page of another site. */
  readonly acts: ReadonlyArray<string>
  private readonly server: LocalServer

  private constructor(server: LocalServer) {
    this.server = server
    this.acts = Object.entries(documents).flatMap(([name, { actsFor }]) =>
      actsFor.map((destination) => Unprotected.labelOf(name, destination))
    ).toSorted()
  }

  private static labelOf(name: string, destination: string): string {
    return `unprotected ${name} as ${destination}`
  }

  static async listen(marks: Marks): Promise<Unprotected> {
    const server = await LocalServer.listen(({ headers, url = "" }, response) => {
      const name = url.slice(1)
      const document = documents[name]
      response.writeHead(document === undefined ? 404 : 200, {
        "content-type": document?.type ?? "text/plain",
        "cache-control": "no-store"
      })
      const label = Unprotected.labelOf(name, String(headers["sec-fetch-dest"]))
      response.end(document?.bodyOf(marks.of(label)))
    })
    return new Unprotected(server)
  }

  get uris(): ReadonlyArray<string> {
    return Object.keys(documents).map((name) => `${this.server.originAs(hosts.service)}/${name}`)
  }

  close(): void {
    this.server.close()
  }
}
