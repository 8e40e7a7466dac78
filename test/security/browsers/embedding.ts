/** Pages of other origins that load parts from elsewhere, in every way that a page can. */
import { hosts, LocalServer } from "./servers.ts"

/** Elements that load a URI, by the destination that browsers name for it. */
const elements: Readonly<Record<string, (uri: string) => string>> = {
  object: (uri) => `<object data="${uri}"></object>`,
  embed: (uri) => `<embed src="${uri}">`,
  iframe: (uri) => `<iframe src="${uri}"></iframe>`,
  image: (uri) => `<img src="${uri}">`,
  script: (uri) => `<script src="${uri}"></script>`,
  style: (uri) => `<link rel="stylesheet" href="${uri}">`
}

/** What all pages load by; the engines load `object` and `embed` in the same way. */
const alwaysBy = ["iframe", "image", "script", "style"]

/** The destinations for which the pages of a host load each URI. */
export const destinationsOf = (from: keyof typeof hosts): ReadonlyArray<string> => [
  from === "foreign" ? "embed" : "object",
  ...alwaysBy
]

const attribute = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("\"", "&quot;")

/** A page that makes the browser send changes to a service, as pages of any origin can. */
const changing = (service: string): string =>
  `<!DOCTYPE html><title>sending</title><iframe name="frame"></iframe>
<form method="post" target="frame" action="${service}/mailboxes">
<input name="name" value="a"></form>
<script>
document.forms[0].submit()
const send = (path, body) =>
  fetch("${service}" + path, { method: "POST", mode: "no-cors", credentials: "include", body })
const read = () => fetch("${service}/accounts/admin", { credentials: "include" })
navigator.sendBeacon("${service}/mailboxes", new URLSearchParams({ name: "b" }))
Promise.allSettled([
  send("/mailboxes", new URLSearchParams({ name: "c" })),
  send("/accounts/admin/token", new URLSearchParams({ name: "d" })),
  send("/accounts/admin/token", "<token/>"),
  read()
]).then((all) => { document.title = all.at(-1).status })
</script>`

/** A server of pages, each of which loads some URIs by all elements. */
export class EmbeddingPages {
  private readonly server: LocalServer
  private readonly pages: Array<string>

  private constructor(server: LocalServer, pages: Array<string>) {
    this.server = server
    this.pages = pages
  }

  static async listen(): Promise<EmbeddingPages> {
    const pages: Array<string> = []
    const server = await LocalServer.listen(({ url = "" }, response) => {
      const page = pages[Number(url.slice(1))]
      response.writeHead(page === undefined ? 404 : 200, { "content-type": "text/html" })
      response.end(page)
    })
    return new EmbeddingPages(server, pages)
  }

  originOf(from: keyof typeof hosts): string {
    return this.server.originAs(hosts[from])
  }

  private add(from: keyof typeof hosts, page: string): string {
    this.pages.push(page)
    return `${this.originOf(from)}/${this.pages.length - 1}`
  }

  /** The page of these URIs, at a host of the service's own site or of another one. */
  pageOf(from: keyof typeof hosts, uris: ReadonlyArray<string>): string {
    const parts = uris.flatMap((uri) =>
      destinationsOf(from).map((destination) => elements[destination]?.(attribute(uri)) ?? "")
    )
    return this.add(from, `<!DOCTYPE html><title>parts</title>${parts.join("\n")}`)
  }

  /** A page that sends changes to a service; its title becomes the outcome of reading there. */
  changingPage(from: keyof typeof hosts, service: string): string {
    return this.add(from, changing(service))
  }

  close(): void {
    this.server.close()
  }
}
