/** Finds what a document has and its schema has not: a misspelled setting must not be ignored. */
import { childrenOf, type Element } from "../xml/index.ts"
import type { Properties, Schema } from "./schema.ts"

/** A schema of an object; `object` makes each. */
interface ObjectSchema {
  readonly properties: Properties
  readonly additionalProperties: boolean
}

const isObjectSchema = (schema: object): schema is ObjectSchema => "properties" in schema

/** The schemas of the objects that an element may be: by reference, in a list, or of a choice. */
const objectsOf = (schema: Schema, schemas: Properties): ReadonlyArray<ObjectSchema> => {
  if (isObjectSchema(schema)) return [schema]
  const { $ref: reference, anyOf, items } = schema
  const name = String(reference ?? "").split("/").at(-1) ?? ""
  // The functions of `schema.ts` make these values.
  const inner = [schemas[name], items, ...(anyOf ?? []) as ReadonlyArray<Schema>]
  return inner.flatMap((one) => one === undefined ? [] : objectsOf(one as Schema, schemas))
}

const withArticle = (name: string): string => `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`

/**
 * What is wrong with the elements of a document by its schema; undefined for none, and where the
 * schema is open. `schemas` are those that it may refer to.
 */
export const elementFault = (
  schema: Schema,
  schemas: Properties,
  node: Element
): string | undefined => {
  const objects = objectsOf(schema, schemas)
  const isOpen = objects.length === 0 || objects.some((one) => one.additionalProperties)
  if (isOpen) return undefined
  for (const child of childrenOf(node)) {
    const anyOf = objects.flatMap(({ properties }) => properties[child.name] ?? [])
    if (anyOf.length === 0) {
      return `${withArticle(node.name)} has no element ${child.name.slice(0, elementNameShownMax)}`
    }
    const fault = elementFault({ anyOf }, schemas, child)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Characters of an unknown name in a message. */
const elementNameShownMax = 40
