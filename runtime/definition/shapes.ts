/** The shapes of states, messages and actions: a Schema, or the fields of each variant by tag. */
import { Schema, SchemaAST } from "effect"
import type { Refusal, Tagged } from "../actor/index.ts"

/** The fields of each variant, by its tag: `{ Waiting: { text: Schema.String }, Absent: {} }`. */
export type Variants = Readonly<Record<string, Schema.Struct.Fields>>

/** Variants by tag, or one Schema of a tagged union. */
export type Shape = Variants | Schema.Codec<Tagged, unknown>

/** The same type, shown as one record. */
type Simplified<A> = { readonly [Key in keyof A]: A[Key] }

/** The values of a shape: a union of plain records, each with its `_tag`. */
export type ShapeValue<S> = S extends Schema.Codec<infer Value extends Tagged, unknown> ? Value
  : S extends Variants ? {
      [Tag in keyof S & string]: Simplified<
        { readonly _tag: Tag } & Schema.Struct.Type<S[Tag]>
      >
    }[keyof S & string]
  : never

/** The values of a shape as they are in JSON. */
export type ShapeEncoded<S> = S extends Schema.Codec<Tagged, infer Encoded> ? Encoded
  : S extends Variants ? {
      [Tag in keyof S & string]: { readonly _tag: Tag } & Schema.Struct.Encoded<S[Tag]>
    }[keyof S & string]
  : never

/** A value that is the same after its way through JSON: what messages and replies consist of. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | ReadonlyArray<JsonValue>
  | { readonly [key: string]: JsonValue | undefined }

/** A reply; undefined where a cell gives none. */
export type ReplyValue = JsonValue | Refusal | undefined

/** The Schema of a shape. */
export const schemaOf = (shape: Shape): Schema.Codec<Tagged, unknown> => {
  // `isSchema` does not narrow to the type of its values, which `Shape` says.
  if (Schema.isSchema(shape)) return shape as Schema.Codec<Tagged, unknown>
  const members = Object.entries(shape).map(([tag, fields]) => Schema.TaggedStruct(tag, fields))
  // Fields are of any Schema; those of a definition need no services.
  return Schema.Union(members) as unknown as Schema.Codec<Tagged, unknown>
}

const partsOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  switch (ast._tag) {
    case "Arrays":
      return [...ast.elements, ...ast.rest]
    case "Declaration":
      return ast.typeParameters
    case "Objects":
      return [
        ...ast.propertySignatures.map(({ type }) => type),
        ...ast.indexSignatures.flatMap(({ parameter, type }) => [parameter, type])
      ]
    case "Suspend":
      return [ast.thunk()]
    case "Union":
      return ast.types
    default:
      return []
  }
}

/** Whether decoding makes another value of one that is valid, or adds one. */
export const changesValues = (
  ast: SchemaAST.AST,
  seen: Set<SchemaAST.AST> = new Set()
): boolean => {
  // A recursive Schema comes back to what was seen.
  if (seen.has(ast)) return false
  seen.add(ast)
  return ast.encoding !== undefined || partsOf(ast).some((part) => changesValues(part, seen))
}

/** The names of all fields of a shape; undefined for a Schema, whose fields are not known here. */
export const fieldNames = (shape: Shape): ReadonlySet<string> | undefined =>
  Schema.isSchema(shape)
    ? undefined
    : new Set(Object.values(shape).flatMap((fields) => Object.keys(fields)))

/** The tagged structs of a Schema that is one, or a union of such; not what else it has. */
export const casesOf = (schema: Schema.Top): ReadonlyArray<readonly [string, Schema.Top]> => {
  if ("members" in schema && Array.isArray(schema.members) && SchemaAST.isUnion(schema.ast)) {
    return schema.members.filter(Schema.isSchema).flatMap((member) => casesOf(member as Schema.Top))
  }
  const ast = SchemaAST.toEncoded(schema.ast)
  const tag = SchemaAST.isObjects(ast)
    ? ast.propertySignatures.find(({ name }) => name === "_tag")?.type
    : undefined
  const isTag = tag !== undefined && SchemaAST.isLiteral(tag) && typeof tag.literal === "string"
  return isTag ? [[String(tag.literal), schema]] : []
}
