/** Finds what a document has and its schema has not: a misspelled setting must not be ignored. */
import { childrenOf, type Element } from "../xml/index.ts"
import { isAttribute, isElement, type Properties, type Schema } from "./schema.ts"

/** A schema of an object; `object` makes each. */
interface ObjectSchema extends Schema {
  readonly properties: Properties
  readonly additionalProperties: boolean
}

const isObjectSchema = (schema: Schema): schema is ObjectSchema => "properties" in schema

/** A text, or a number, which documents write as text. */
const isTextSchema = ({ type }: Schema): boolean =>
  [type].flat().some((one) => one === "string" || one === "number" || one === "integer")

/** The schemas that an element may have: by reference, in a list, or of a choice. */
const alternativesOf = (schema: Schema, schemas: Properties): ReadonlyArray<Schema> => {
  const { $ref: reference, anyOf, items } = schema
  const name = String(reference ?? "").split("/").at(-1) ?? ""
  const named = schemas[name]
  // The functions of `schema.ts` make these values.
  const inner = [named, items, ...Array.isArray(anyOf) ? anyOf : []]
    .filter((one): one is Schema => one !== undefined)
  return inner.length === 0 ? [schema] : inner.flatMap((one) => alternativesOf(one, schemas))
}

/** Whether an element may come more than once. */
const isRepeatable = ({ anyOf, type }: Schema): boolean =>
  type === "array" || (Array.isArray(anyOf) && anyOf.some(isRepeatable))

const isOpen = (schema: Schema): boolean =>
  isObjectSchema(schema) ? schema.additionalProperties : !isTextSchema(schema)

/** Attributes of XML itself, which any element may have. */
const isXmlAttribute = (name: string): boolean => /^(?:xmlns$|xmlns:|xml:)/.test(name)

const withArticle = (name: string): string => `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`

/** Characters of an unknown name in a message. */
const nameShownMax = 40

const shown = (name: string): string => name.slice(0, nameShownMax)

/** What to send in place of what the schema has not. */
const remedyOf = (
  objects: ReadonlyArray<ObjectSchema>,
  isKind: (schema: Schema) => boolean
): string => {
  const names = objects.flatMap(({ properties }) =>
    Object.keys(properties).filter((name) => {
      const schema = properties[name] ?? {}
      return isKind(schema) && schema["readOnly"] !== true
    })
  )
  return names.length === 0 ? "remove it" : `it may have ${[...new Set(names)].join(", ")}`
}

/** The schemas of the objects for a name. */
const propertiesOf = (objects: ReadonlyArray<ObjectSchema>, name: string): ReadonlyArray<Schema> =>
  objects.flatMap(({ properties }) => {
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined
    return schema === undefined ? [] : [schema]
  })

const attributeFault = (
  objects: ReadonlyArray<ObjectSchema>,
  node: Element
): string | undefined => {
  const unknown = Object.keys(node.attributes).find((name) =>
    !isXmlAttribute(name) && !propertiesOf(objects, name).some(isAttribute)
  )
  return unknown === undefined
    ? undefined
    : `${withArticle(node.name)} has no attribute ${shown(unknown)}: ` +
      remedyOf(objects, isAttribute)
}

/**
 * What is wrong with a document by its schema; undefined for nothing, and where the schema is open.
 * `schemas` are those that it may refer to.
 */
export const documentFault = (
  schema: Schema,
  schemas: Properties,
  node: Element
): string | undefined => {
  const alternatives = alternativesOf(schema, schemas)
  if (alternatives.some(isOpen)) return undefined
  const objects = alternatives.filter(isObjectSchema)
  const fault = attributeFault(objects, node)
  // An element that only has text is read with all that is in it.
  if (fault !== undefined || objects.length === 0) return fault
  const single = new Set<string>()
  for (const child of childrenOf(node)) {
    const { name } = child
    const anyOf = propertiesOf(objects, name).filter(isElement)
    if (anyOf.length === 0) {
      return `${withArticle(node.name)} has no element ${shown(name)}: ` +
        remedyOf(objects, isElement)
    }
    if (single.has(name)) return `${withArticle(node.name)} has one ${name} only: remove the others`
    if (!anyOf.some(isRepeatable)) single.add(name)
    const inner = documentFault({ anyOf }, schemas, child)
    if (inner !== undefined) return inner
  }
  return undefined
}
