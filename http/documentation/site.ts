/**
 * The documentation: `docs/` of the sources as `deploy/generate/docs.mjs` has rendered it. A node
 * reads it at the first request for it.
 */
import { Effect, Schema } from "effect"
import { searchable, type SearchableText } from "./search.ts"

/** One page: a Markdown file of the folder. */
const DocsPage = Schema.Struct({
  /** After `/docs/`, such as `how-to/recipes`; empty for the first page. */
  path: Schema.String,
  /** The file in the sources, such as `docs/how-to/recipes.md`. */
  file: Schema.String,
  title: Schema.String,
  /** The heading under which the first page lists it; empty for the first page. */
  section: Schema.String,
  /** The headings below the title, with their anchors. */
  headings: Schema.Array(
    Schema.Struct({ level: Schema.Int, id: Schema.String, text: Schema.String })
  ),
  /** The plain text between two headings; the first part, before any heading, has no anchor. */
  parts: Schema.Array(
    Schema.Struct({ id: Schema.String, title: Schema.String, text: Schema.String })
  ),
  /** The page below its title, as HTML that the build has made. */
  html: Schema.String
})

/** All pages, in the order in which they are read; the first one lists the others. */
const DocsSite = Schema.Struct({
  pages: Schema.NonEmptyArray(DocsPage),
  /** Pictures of pages (WebP, in base64) by the names of their files. */
  pictures: Schema.Record(Schema.String, Schema.String)
})

export type DocsPage = typeof DocsPage.Type

export type DocsSite = typeof DocsSite.Type

const decodeSite = Schema.decodeUnknownSync(Schema.fromJsonString(DocsSite))

/** The texts of a page for the search, each with its address. */
export const pageTexts = ({ parts, path, title }: DocsPage): ReadonlyArray<SearchableText> => {
  const address = path === "" ? "/docs" : `/docs/${path}`
  return parts.map((part) =>
    searchable({
      href: part.id === "" ? address : `${address}#${part.id}`,
      page: title,
      title: part.title,
      text: part.text
    })
  )
}

/** The documentation of a node. */
export class Documentation {
  private readonly read: () => Promise<string | undefined>
  private reading: Promise<DocsSite | undefined> | undefined

  /** `read` returns the file of the build; undefined where a program was built without one. */
  constructor(read: () => Promise<string | undefined>) {
    this.read = read
  }

  /** All pages; undefined in a program without documentation. A failed read is tried again. */
  readonly site: Effect.Effect<DocsSite | undefined> = Effect.promise(() =>
    this.reading ??= this.load()
  )

  private async load(): Promise<DocsSite | undefined> {
    try {
      const text = await this.read()
      return text === undefined ? undefined : decodeSite(text)
    } catch (error) {
      this.reading = undefined
      throw error
    }
  }
}
