// The grammar of D: the whole language as the Dynamic Tracing Guide gives it. Actions only build
// the tree; resolve.cc decides what a construct means and what is not supported.

%code requires {
#include "dif/d/syntax/ast.h"
namespace ringside::d { struct ParseContext; class NodeMaker; }
}

%code {
#include <algorithm>
#include <type_traits>

#include "dif/d/syntax/parse_context.h"
using namespace ringside::d;

// GCC does not see that the stack is only freed once it is no longer the array yyssa.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#endif

#define YYLLOC_DEFAULT(current, rhs, n) \
  (current) = (n) > 0 ? YYRHSLOC(rhs, 1) : YYRHSLOC(rhs, 0)
// Bison only lets its stack grow when the nodes on it may be copied as bytes.
#define RINGSIDE_D_LTYPE_IS_TRIVIAL 1
static_assert(std::is_trivially_copyable_v<ringside::d::Location>);

int ringside_d_lex(RINGSIDE_D_STYPE* value, RINGSIDE_D_LTYPE* at, void* scanner);

namespace {

void ringside_d_error(Location* at, void*, ParseContext& context, NodeMaker&, const char*);

}  // namespace

#define EXPR(...) nodes.expr(__VA_ARGS__)
#define REQUIRE(node) if ((node) == nullptr) YYABORT
}

%define api.pure full
%define api.prefix {ringside_d_}
%define api.value.type union
%define api.location.type {ringside::d::Location}
%define parse.error custom
%locations
%param {void* scanner}
%parse-param {ringside::d::ParseContext& context} {ringside::d::NodeMaker& nodes}

%token <ringside::d::Text> IDENT TYPE_NAME STRING DECIMAL KERNEL_SYMBOL AGGREGATION PATTERN
%token <ringside::d::Expr*> INTEGER
%token STOP RESERVED PREDICATE_BEGIN PREDICATE_END ELLIPSIS ARROW INCREMENT DECREMENT
%token SHL SHR LE GE EQ NE AND OR XOR
%token ADD_ASSIGN SUB_ASSIGN MUL_ASSIGN DIV_ASSIGN MOD_ASSIGN AND_ASSIGN OR_ASSIGN XOR_ASSIGN
%token SHL_ASSIGN SHR_ASSIGN
%token AUTO CHAR CONST DOUBLE ELSE ENUM EXTERN FLOAT IF INLINE INT LONG OFFSETOF PROBE PROVIDER
%token BREAK CONTINUE FOR WHILE
%token REGISTER RESTRICT SELF SHORT SIGNED SIZEOF STATIC STRING_TYPE STRINGOF STRUCT THIS TRANSLATOR
%token TYPEDEF UNION UNSIGNED USERLAND VOID VOLATILE XLATE

%type <ringside::d::Expr*> expression assignment operation unary cast postfix primary
%type <ringside::d::ExprList*> arguments argument_list
%type <ringside::d::TypeSpec*> specifiers specifier struct_specifier enum_specifier
%type <ringside::d::Declarator*> declarator direct_declarator abstract_declarator
%type <ringside::d::Declarator*> direct_abstract any_declarator member_declarator
%type <ringside::d::Derivation*> array_suffix function_suffix
%type <std::vector<ringside::d::Declarator*>*> declarators member_declarators
%type <ringside::d::Declaration*> declaration parameter type_name member
%type <std::vector<ringside::d::Declaration*>*> parameters members
%type <std::vector<ringside::d::EnumeratorSpec>*> enumerators
%type <ringside::d::Statement*> statement
%type <ringside::d::Expr*> expression_opt
%type <std::vector<ringside::d::Statement*>*> statements statement_list block
%type <std::vector<ringside::d::ProbePattern>*> patterns
%type <ringside::d::Expr*> predicate
%type <ringside::d::ClauseNode*> clause
%type <ringside::d::InlineNode*> inline_definition
%type <ringside::d::TranslatorNode*> translator
%type <ringside::d::ProviderNode*> provider
%type <std::vector<ringside::d::TranslatorNode::MemberValue>*> translations
%type <std::vector<ringside::d::ProviderNode::Probe>*> provider_probes
%type <ringside::d::Derivation*> translated_opt
%type <ringside::d::ProbeDefinitionNode*> probe_definition
%type <std::vector<ringside::d::ProbeDefinitionNode::Part>*> probe_parts
%type <std::vector<ringside::d::ProbeDefinitionNode::Qualifier>*> definition_words
%type <std::vector<ringside::d::ProbePattern>*> alternatives
%type <std::vector<ringside::d::Text>*> texts
%type <ringside::d::Text> member_name
%type <bool> struct_word
%type <ringside::d::Scope> scope_word
%type <ringside::d::Text> tag

%right '?' ':'
%left OR
%left XOR
%left AND
%left '|'
%left '^'
%left '&'
%left EQ NE
%left '<' '>' LE GE
%left SHL SHR
%left '+' '-'
%left '*' '/' '%'
%precedence THEN
%precedence ELSE

%%

program:
    %empty
  | program declaration    { context.state.tree.externals.push_back($2); }
  | program inline_definition         { context.state.tree.externals.push_back($2); }
  | program translator     { context.state.tree.externals.push_back($2); }
  | program provider       { context.state.tree.externals.push_back($2); }
  | program clause         { context.state.tree.externals.push_back($2); }
  | program ';'
  ;

// Clauses

clause:
    patterns predicate '{' statements '}'
      { $$ = nodes.make<ClauseNode>({@1, *$1, $2, *$4}); }
  | patterns predicate
      { if (!$2 && declares_unknown_type(context.state, yychar <= 0)) YYABORT;
        if (!$2 && context.state.options.is_file) {
          context.state.stop("D_SYNTAX", @1, "expected predicate and/or actions following probe description");
          YYABORT;
        }
        $$ = nodes.make<ClauseNode>({@1, *$1, $2, {}}); }
  ;

patterns:
    PATTERN               { $$ = nodes.make<std::vector<ProbePattern>>(); $$->push_back({@1, $1}); }
  | patterns ',' PATTERN  { $$ = append($1, ProbePattern{@3, $3}); }
  ;

predicate:
    %empty                                     { $$ = nullptr; }
  | PREDICATE_BEGIN expression PREDICATE_END   { $$ = $2; }
  ;

statements:
    statement_list             { $$ = $1; }
  | statement_list expression  { $$ = append($1, nodes.make<Statement>({.expression = $2})); }
  ;

statement_list:
    %empty                    { $$ = nodes.make<std::vector<Statement*>>(); }
  | statement_list ';'        { $$ = $1; }
  | statement_list statement  { $$ = append($1, $2); }
  ;

statement:
    expression ';'                               { $$ = nodes.make<Statement>({.expression = $1}); }
  | IF '(' expression ')' block %prec THEN       { $$ = nodes.if_statement($3, $5, nullptr); }
  | IF '(' expression ')' block ELSE block       { $$ = nodes.if_statement($3, $5, $7); }
  | WHILE '(' expression ')' block
      { $$ = nodes.loop({.at = @1, .expression = $3}, *$5); }
  | WHILE '(' expression ';' expression ')' block
      { $$ = nodes.loop({.at = @1, .expression = $3, .limit = $5}, *$7); }
  | FOR '(' expression_opt ';' expression_opt ';' expression_opt ')' block
      { $$ = nodes.loop({.at = @1, .expression = $5, .init = $3, .step = $7}, *$9); }
  | FOR '(' expression_opt ';' expression_opt ';' expression_opt ';' expression ')' block
      { $$ = nodes.loop({.at = @1, .expression = $5, .init = $3, .step = $7, .limit = $9}, *$11); }
  | BREAK ';'     { $$ = nodes.make<Statement>({.kind = Statement::Kind::Break, .at = @1}); }
  | CONTINUE ';'  { $$ = nodes.make<Statement>({.kind = Statement::Kind::Continue, .at = @1}); }
  ;

expression_opt:
    %empty      { $$ = nullptr; }
  | expression
  ;

block:
    '{' statements '}'  { $$ = $2; }
  | statement           { $$ = nodes.make<std::vector<Statement*>>(); $$->push_back($1); }
  | ';'                 { $$ = nodes.make<std::vector<Statement*>>(); }
  ;

// Expressions

expression:
    assignment
  | expression ',' assignment  { REQUIRE($$ = EXPR(ExprKind::Comma, @2, $1, $3)); }
  ;

assignment:
    operation
  | unary '=' assignment             { REQUIRE($$ = nodes.assign(@2, $1, $3)); }
  | unary ADD_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Add)); }
  | unary SUB_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Sub)); }
  | unary MUL_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Mul)); }
  | unary DIV_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Div)); }
  | unary MOD_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Mod)); }
  | unary AND_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::BitAnd)); }
  | unary OR_ASSIGN assignment       { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::BitOr)); }
  | unary XOR_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::BitXor)); }
  | unary SHL_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Shl)); }
  | unary SHR_ASSIGN assignment      { REQUIRE($$ = nodes.assign(@2, $1, $3, Op::Shr)); }
  ;

operation:
    cast
  | operation '*' operation   { REQUIRE($$ = nodes.binary(Op::Mul, @2, $1, $3)); }
  | operation '/' operation   { REQUIRE($$ = nodes.binary(Op::Div, @2, $1, $3)); }
  | operation '%' operation   { REQUIRE($$ = nodes.binary(Op::Mod, @2, $1, $3)); }
  | operation '+' operation   { REQUIRE($$ = nodes.binary(Op::Add, @2, $1, $3)); }
  | operation '-' operation   { REQUIRE($$ = nodes.binary(Op::Sub, @2, $1, $3)); }
  | operation SHL operation   { REQUIRE($$ = nodes.binary(Op::Shl, @2, $1, $3)); }
  | operation SHR operation   { REQUIRE($$ = nodes.binary(Op::Shr, @2, $1, $3)); }
  | operation '<' operation   { REQUIRE($$ = nodes.binary(Op::Lt, @2, $1, $3)); }
  | operation LE operation    { REQUIRE($$ = nodes.binary(Op::Le, @2, $1, $3)); }
  | operation '>' operation   { REQUIRE($$ = nodes.binary(Op::Gt, @2, $1, $3)); }
  | operation GE operation    { REQUIRE($$ = nodes.binary(Op::Ge, @2, $1, $3)); }
  | operation EQ operation    { REQUIRE($$ = nodes.binary(Op::Eq, @2, $1, $3)); }
  | operation NE operation    { REQUIRE($$ = nodes.binary(Op::Ne, @2, $1, $3)); }
  | operation '&' operation   { REQUIRE($$ = nodes.binary(Op::BitAnd, @2, $1, $3)); }
  | operation '^' operation   { REQUIRE($$ = nodes.binary(Op::BitXor, @2, $1, $3)); }
  | operation '|' operation   { REQUIRE($$ = nodes.binary(Op::BitOr, @2, $1, $3)); }
  | operation AND operation   { REQUIRE($$ = nodes.binary(Op::And, @2, $1, $3)); }
  | operation XOR operation   { REQUIRE($$ = nodes.binary(Op::Xor, @2, $1, $3)); }
  | operation OR operation    { REQUIRE($$ = nodes.binary(Op::Or, @2, $1, $3)); }
  | operation '?' expression ':' operation  { REQUIRE($$ = EXPR(ExprKind::Conditional, @2, $1, $3, $5)); }
  ;

unary:
    postfix
  | INCREMENT unary  { REQUIRE($$ = nodes.unary(Op::PreInc, @1, $2)); }
  | DECREMENT unary  { REQUIRE($$ = nodes.unary(Op::PreDec, @1, $2)); }
  | '+' cast         { REQUIRE($$ = nodes.unary(Op::Plus, @1, $2)); }
  | '-' cast         { REQUIRE($$ = nodes.unary(Op::Neg, @1, $2)); }
  | '~' cast         { REQUIRE($$ = nodes.unary(Op::BitNot, @1, $2)); }
  | '!' cast         { REQUIRE($$ = nodes.unary(Op::Not, @1, $2)); }
  | '*' cast         { REQUIRE($$ = nodes.unary(Op::Deref, @1, $2)); }
  | '&' cast         { REQUIRE($$ = nodes.unary(Op::AddressOf, @1, $2)); }
  | SIZEOF unary     { REQUIRE($$ = EXPR(ExprKind::SizeofExpr, @1, $2)); }
  | STRINGOF unary   { REQUIRE($$ = EXPR(ExprKind::Stringof, @1, $2)); }
  | SIZEOF '(' type_name ')'
      { REQUIRE($$ = EXPR(ExprKind::SizeofType, @1)); $$->type_name = $3; }
  ;

cast:
    unary
  | '(' type_name ')' cast  { REQUIRE($$ = EXPR(ExprKind::Cast, @1, $4)); $$->type_name = $2; }
  ;

postfix:
    primary
  | postfix '[' argument_list ']'  { REQUIRE($$ = nodes.index(@2, $1, $3)); }
  | postfix '(' arguments ')'      { REQUIRE($$ = nodes.call(@1, *$1, $3)); }
  | postfix '.' IDENT     { REQUIRE($$ = EXPR(ExprKind::Member, @2, $1)); $$->text = $3; }
  | postfix ARROW IDENT   { REQUIRE($$ = EXPR(ExprKind::Arrow, @2, $1)); $$->text = $3; }
  | postfix INCREMENT     { REQUIRE($$ = nodes.unary(Op::PostInc, @2, $1)); }
  | postfix DECREMENT     { REQUIRE($$ = nodes.unary(Op::PostDec, @2, $1)); }
  ;

primary:
    IDENT                       { REQUIRE($$ = EXPR(ExprKind::Name, @1)); $$->text = $1; }
  | scope_word ARROW IDENT      { REQUIRE($$ = EXPR(ExprKind::Scoped, @1)); $$->text = $3; $$->scope = $1; }
  | KERNEL_SYMBOL               { REQUIRE($$ = EXPR(ExprKind::KernelSymbol, @1)); $$->text = $1; }
  | AGGREGATION                 { REQUIRE($$ = EXPR(ExprKind::Aggregation, @1)); $$->text = $1; }
  | INTEGER                     { $$ = $1; }
  | STRING                      { REQUIRE($$ = EXPR(ExprKind::String, @1)); $$->text = $1; }
  | DECIMAL                     { REQUIRE($$ = EXPR(ExprKind::Decimal, @1)); $$->text = $1; }
  | OFFSETOF '(' type_name ',' member_name ')'
      { REQUIRE($$ = EXPR(ExprKind::Offsetof, @1)); $$->type_name = $3; $$->text = $5; }
  | XLATE '<' type_name '>' '(' expression ')'
      { REQUIRE($$ = EXPR(ExprKind::Xlate, @1, $6)); $$->type_name = $3; }
  | '(' expression ')'          { $$ = $2; if (nodes.too_deep(++$$->depth, @1)) YYABORT; }
  ;

scope_word:
    SELF  { $$ = Scope::Thread; }
  | THIS  { $$ = Scope::Clause; }
  ;

arguments:
    %empty         { $$ = nodes.make<ExprList>(); }
  | argument_list
  ;

argument_list:
    assignment                    { $$ = nodes.make<ExprList>(); $$->push_back($1); }
  | argument_list ',' assignment  { $$ = append($1, $3); }
  ;

// Declarations

declaration:
    specifiers ';'
      { $$ = nodes.make<Declaration>({.at = @1, .spec = $1, .declarators = {}}); }
  | specifiers declarators ';'
      { $$ = nodes.make<Declaration>({.at = @1, .spec = $1, .declarators = *$2}); nodes.declare($$); }
  ;

inline_definition:
    INLINE specifiers declarator '=' assignment ';'
      { $$ = nodes.make<InlineNode>({@1, $2, $3, $5}); }
  ;

specifiers:
    specifier
  | specifiers specifier  { REQUIRE($$ = nodes.merge($1, $2)); }
  ;

specifier:
    AUTO         { $$ = nodes.storage_word(@1, Storage::Auto); }
  | REGISTER     { $$ = nodes.storage_word(@1, Storage::Register); }
  | STATIC       { $$ = nodes.storage_word(@1, Storage::Static); }
  | EXTERN       { $$ = nodes.storage_word(@1, Storage::Extern); }
  | TYPEDEF      { $$ = nodes.storage_word(@1, Storage::Typedef); }
  | SELF         { $$ = nodes.storage_word(@1, Storage::Thread); }
  | THIS         { $$ = nodes.storage_word(@1, Storage::Clause); }
  | VOID         { $$ = nodes.base_word(@1, TypeSpec::Base::Void); }
  | CHAR         { $$ = nodes.base_word(@1, TypeSpec::Base::Char); }
  | INT          { $$ = nodes.base_word(@1, TypeSpec::Base::Int); }
  | FLOAT        { $$ = nodes.base_word(@1, TypeSpec::Base::Float); }
  | DOUBLE       { $$ = nodes.base_word(@1, TypeSpec::Base::Double); }
  | STRING_TYPE  { $$ = nodes.base_word(@1, TypeSpec::Base::String); }
  | SHORT        { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_short = true; }
  | LONG         { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->longs = 1; }
  | SIGNED       { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_signed = true; }
  | UNSIGNED     { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_unsigned = true; }
  | USERLAND     { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_userland = true; }
  | CONST        { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_const = true; }
  | VOLATILE     { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_volatile = true; }
  | RESTRICT     { $$ = nodes.base_word(@1, TypeSpec::Base::None); $$->is_restrict = true; }
  | TYPE_NAME    { $$ = nodes.named_word(@1, TypeSpec::Base::Named, *$1); }
  | struct_specifier
  | enum_specifier
  ;

struct_specifier:
    struct_word IDENT
      { $$ = nodes.named_word(@1, $1 ? TypeSpec::Base::Struct : TypeSpec::Base::Union, *$2); }
  | struct_word KERNEL_SYMBOL
      { $$ = nodes.named_word(@1, $1 ? TypeSpec::Base::Struct : TypeSpec::Base::Union, *$2); }
  | struct_word tag '{' { if (!nodes.define_tag($1 ? "struct" : "union", $2, @1)) YYABORT; } members '}'
      { $$ = nodes.base_word(@1, $1 ? TypeSpec::Base::Struct : TypeSpec::Base::Union);
        $$->name = $2;
        $$->is_definition = true;
        $$->members = $5;
        for (const Declaration* member : *$5) $$->depth = std::max($$->depth, member->spec->depth + 1);
        if (nodes.too_deep($$->depth, @1)) YYABORT; }
  ;

struct_word:
    STRUCT  { $$ = true; }
  | UNION   { $$ = false; }
  ;

tag:
    %empty  { $$ = nullptr; }
  | IDENT
  ;

members:
    %empty          { $$ = nodes.make<std::vector<Declaration*>>(); }
  | members member  { $$ = append($1, $2); }
  ;

member:
    specifiers ';'
      { $$ = nodes.make<Declaration>({.at = @1, .spec = $1, .declarators = {}}); }
  | specifiers member_declarators ';'
      { $$ = nodes.make<Declaration>({.at = @1, .spec = $1, .declarators = *$2}); }
  ;

member_declarators:
    member_declarator                         { $$ = nodes.make<std::vector<Declarator*>>(); $$->push_back($1); }
  | member_declarators ',' member_declarator  { $$ = append($1, $3); }
  ;

member_declarator:
    declarator
  | declarator ':' operation  { $$ = $1; $$->bit_width = $3; }
  | ':' operation             { $$ = nodes.make<Declarator>({.at = @1}); $$->bit_width = $2; }
  ;

enum_specifier:
    ENUM IDENT          { $$ = nodes.named_word(@1, TypeSpec::Base::Enum, *$2); }
  | ENUM KERNEL_SYMBOL  { $$ = nodes.named_word(@1, TypeSpec::Base::Enum, *$2); }
  | ENUM tag '{' enumerators comma_opt '}'
      { $$ = nodes.base_word(@1, TypeSpec::Base::Enum);
        $$->name = $2;
        $$->is_definition = true;
        $$->enumerators = $4;
        if (!nodes.define_tag("enum", $2, @1)) YYABORT; }
  ;

comma_opt: %empty | ',' ;

enumerators:
    IDENT                            { $$ = nodes.make<std::vector<EnumeratorSpec>>(); $$->push_back({@1, $1, nullptr}); }
  | IDENT '=' operation              { $$ = nodes.make<std::vector<EnumeratorSpec>>(); $$->push_back({@1, $1, $3}); }
  | enumerators ',' IDENT                { $$ = append($1, EnumeratorSpec{@3, $3, nullptr}); }
  | enumerators ',' IDENT '=' operation  { $$ = append($1, EnumeratorSpec{@3, $3, $5}); }
  ;

declarators:
    declarator                  { $$ = nodes.make<std::vector<Declarator*>>(); $$->push_back($1); }
  | declarators ',' declarator  { $$ = append($1, $3); }
  ;

declarator:
    direct_declarator
  | '*' qualifiers declarator
      { $$ = $3; if (!nodes.derive($$, {.kind = Derivation::Kind::Pointer})) YYABORT; }
  ;

qualifiers: %empty | qualifiers CONST | qualifiers VOLATILE | qualifiers RESTRICT | qualifiers USERLAND ;

direct_declarator:
    IDENT                              { $$ = nodes.make<Declarator>({.at = @1, .name = $1}); }
  | KERNEL_SYMBOL
      { $$ = nullptr;
        context.state.stop("D_DECL_SCOPE", @1, "a name of a kernel module cannot be declared");
        YYABORT; }
  | '(' declarator ')'                 { $$ = $2; }
  | direct_declarator array_suffix     { $$ = $1; if (!nodes.derive($$, *$2)) YYABORT; }
  | direct_declarator function_suffix  { $$ = $1; if (!nodes.derive($$, *$2)) YYABORT; }
  | direct_declarator '(' identifiers ')'
      { $$ = $1;
        context.state.stop("D_DECL_IDENT", @3, "old-style declaration or incorrect type specified");
        YYABORT; }
  ;

identifiers: IDENT | identifiers ',' IDENT ;

array_suffix:
    '[' ']'             { $$ = nodes.derivation(Derivation::Kind::Array); }
  | '[' operation ']'   { $$ = nodes.derivation(Derivation::Kind::Array); $$->count = $2; }
  | '[' parameters ']'  { $$ = nodes.derivation(Derivation::Kind::Keys); $$->parameters = $2; }
  | '[' varargs ']'
      { $$ = nullptr;
        context.state.stop("D_DECL_PROTO_VARARGS", @1, "array prototype may not use a variable-length argument list");
        YYABORT; }
  ;

varargs: ELLIPSIS | parameters ',' ELLIPSIS {} ;

function_suffix:
    '(' ')'             { $$ = nodes.derivation(Derivation::Kind::Function); $$->variadic = true; }
  | '(' ELLIPSIS ')'    { $$ = nodes.derivation(Derivation::Kind::Function); $$->variadic = true; }
  | '(' parameters ')'  { $$ = nodes.derivation(Derivation::Kind::Function); $$->parameters = $2; }
  | '(' parameters ',' ELLIPSIS ')'
      { $$ = nodes.derivation(Derivation::Kind::Function); $$->parameters = $2; $$->variadic = true; }
  ;

parameters:
    parameter                 { $$ = nodes.make<std::vector<Declaration*>>(); $$->push_back($1); }
  | parameters ',' parameter  { $$ = append($1, $3); }
  ;

parameter:
    specifiers                 { $$ = nodes.one($1, nullptr); }
  | specifiers any_declarator  { $$ = nodes.one($1, $2); }
  ;

any_declarator: declarator | abstract_declarator ;

type_name:
    specifiers                      { $$ = nodes.one($1, nullptr); }
  | specifiers abstract_declarator  { $$ = nodes.one($1, $2); }
  ;

abstract_declarator:
    '*' qualifiers
      { $$ = nodes.make<Declarator>({.at = @1}); nodes.derive($$, {.kind = Derivation::Kind::Pointer}); }
  | '*' qualifiers abstract_declarator
      { $$ = $3; if (!nodes.derive($$, {.kind = Derivation::Kind::Pointer})) YYABORT; }
  | direct_abstract
  ;

direct_abstract:
    '(' abstract_declarator ')'      { $$ = $2; }
  | array_suffix                     { $$ = nodes.make<Declarator>({.at = @1}); nodes.derive($$, *$1); }
  | function_suffix                  { $$ = nodes.make<Declarator>({.at = @1}); nodes.derive($$, *$1); }
  | direct_abstract array_suffix     { $$ = $1; if (!nodes.derive($$, *$2)) YYABORT; }
  | direct_abstract function_suffix  { $$ = $1; if (!nodes.derive($$, *$2)) YYABORT; }
  ;

// Translators and providers

translator:
    TRANSLATOR type_name '<' specifiers declarator '>' '{' translations '}' ';'
      { $$ = nodes.make<TranslatorNode>({@1, $2, nodes.one($4, $5), *$8}); }
  ;

translations:
    %empty  { $$ = nodes.make<std::vector<TranslatorNode::MemberValue>>(); }
  | translations member_name '=' assignment ';'  { $$ = append($1, {@2, $2, $4}); }
  ;

member_name: IDENT | TYPE_NAME ;

provider:
    PROVIDER member_name '{' provider_probes '}' ';'
      { $$ = nodes.make<ProviderNode>({@1, $2, *$4, {}}); }
  | PROVIDER member_name '{' provider_probes '}' definition_words ';'
      { $$ = nodes.make<ProviderNode>({@1, $2, *$4, *$6}); }
  ;

provider_probes:
    %empty  { $$ = nodes.make<std::vector<ProviderNode::Probe>>(); }
  | provider_probes PROBE member_name function_suffix translated_opt probe_definition ';'
      { $$ = append($1, {@3, $3, *$4, $5 ? *$5 : Derivation(), $5 != nullptr, $6}); }
  ;

translated_opt:
    %empty               { $$ = nullptr; }
  | ':' function_suffix  { $$ = $2; }
  ;

probe_definition:
    %empty                      { $$ = nullptr; }
  | definition_words            { $$ = nodes.make<ProbeDefinitionNode>({{}, *$1}); }
  | '=' probe_parts             { $$ = nodes.make<ProbeDefinitionNode>({*$2, {}}); }
  | '=' probe_parts definition_words
      { $$ = nodes.make<ProbeDefinitionNode>({*$2, *$3}); }
  ;

probe_parts:
    alternatives predicate
      { $$ = nodes.make<std::vector<ProbeDefinitionNode::Part>>(); $$->push_back({@1, *$1, $2, {}}); }
  | alternatives predicate '{' statements '}'
      { $$ = nodes.make<std::vector<ProbeDefinitionNode::Part>>(); $$->push_back({@1, *$1, $2, *$4}); }
  | probe_parts ARROW alternatives predicate
      { $$ = append($1, {@3, *$3, $4, {}}); }
  | probe_parts ARROW alternatives predicate '{' statements '}'
      { $$ = append($1, {@3, *$3, $4, *$6}); }
  ;

alternatives:
    PATTERN                   { $$ = nodes.make<std::vector<ProbePattern>>(); $$->push_back({@1, $1}); }
  | alternatives '|' PATTERN  { $$ = append($1, ProbePattern{@3, $3}); }
  ;

definition_words:
    IDENT texts
      { $$ = nodes.make<std::vector<ProbeDefinitionNode::Qualifier>>(); $$->push_back({@1, $1, *$2}); }
  | definition_words IDENT texts  { $$ = append($1, {@2, $2, *$3}); }
  ;

texts:
    STRING            { $$ = nodes.make<std::vector<Text>>(); $$->push_back($1); }
  | texts ',' STRING  { $$ = append($1, $3); }
  ;

%%

namespace {

void ringside_d_error(Location* at, void*, ParseContext& context, NodeMaker&, const char*) {
  stop_at_syntax_error(context.state, *at, false);
}

}  // namespace

// Bison calls this for a token that does not fit.
int yyreport_syntax_error(const yypcontext_t* state, void*, ParseContext& context, NodeMaker&) {
  yysymbol_kind_t expected[YYNTOKENS];
  const int count = yypcontext_expected_tokens(state, expected, YYNTOKENS);
  const bool type = std::find(expected, expected + count, YYSYMBOL_TYPE_NAME) != expected + count;
  stop_at_syntax_error(context.state, *yypcontext_location(state), type);
  return 0;
}
