/** Every page of the documentation, which `sample-pages.ts` has examples of. */
import { readFileSync } from "node:fs"
import { expectStatus, send } from "../client.ts"
import { type SamplePage, samplePage } from "./sample-page.ts"

const siteFile = new URL("../../../dist/docs/site.json", import.meta.url)

/** The documents and the READMEs of modules, as the build has rendered them. */
const sitePaths = (): ReadonlyArray<string> => {
  // The build writes it; test/docs/site.test.ts checks its form.
  const { pages } = JSON.parse(readFileSync(siteFile, "utf8")) as {
    readonly pages: ReadonlyArray<{ readonly path: string }>
  }
  return pages.map(({ path }) => path === "" ? "/docs" : `/docs/${path}`)
}

/** The pages of resources, to which the one of the API leads. */
const apiPaths = async (base: string): Promise<ReadonlyArray<string>> => {
  const { text } = expectStatus(
    await send(base, "/docs/api", { headers: { accept: "text/html" } }),
    200
  )
  return [...text.matchAll(/href="(\/docs\/api\/[^"#]+)"/g)].map(([, path = ""]) => path)
}

/** All pages of `/docs`, of modules and of the API. */
export const documentationPages = async (base: string): Promise<ReadonlyArray<SamplePage>> =>
  [...new Set([...sitePaths(), "/docs/api", ...await apiPaths(base)])]
    .map((path) => samplePage(path, path))
