#include "src/data/grammar/lexicon.h"

namespace headlab::grammar {
namespace {
constexpr Gender m = Gender::masculine, f = Gender::feminine, n = Gender::neuter;
}  // namespace

const std::vector<Noun>& nouns() {
  static const std::vector<Noun> list = {
      {"man", "men", "Mann", "Männer", m, person, "es"},
      {"woman", "women", "Frau", "Frauen", f, person, ""},
      {"child", "children", "Kind", "Kinder", n, person, "es"},
      {"boy", "boys", "Junge", "Jungen", m, person, "n", true},
      {"girl", "girls", "Mädchen", "Mädchen", n, person, "s"},
      {"teacher", "teachers", "Lehrer", "Lehrer", m, person, "s"},
      {"doctor", "doctors", "Ärztin", "Ärztinnen", f, person, ""},
      {"student", "students", "Student", "Studenten", m, person, "en", true},
      {"neighbour", "neighbours", "Nachbar", "Nachbarn", m, person, "n", true},
      {"friend", "friends", "Freund", "Freunde", m, person, "es"},
      {"aunt", "aunts", "Tante", "Tanten", f, person, ""},
      {"uncle", "uncles", "Onkel", "Onkel", m, person, "s"},
      {"sister", "sisters", "Schwester", "Schwestern", f, person, ""},
      {"king", "kings", "König", "Könige", m, person, "s"},
      {"queen", "queens", "Königin", "Königinnen", f, person, ""},
      {"farmer", "farmers", "Bauer", "Bauern", m, person, "n", true},
      {"grandmother", "grandmothers", "Großmutter", "Großmütter", f, person, ""},
      {"singer", "singers", "Sängerin", "Sängerinnen", f, person, ""},
      {"dog", "dogs", "Hund", "Hunde", m, animal, "es"},
      {"cat", "cats", "Katze", "Katzen", f, animal, ""},
      {"horse", "horses", "Pferd", "Pferde", n, animal, "es"},
      {"bird", "birds", "Vogel", "Vögel", m, animal, "s"},
      {"mouse", "mice", "Maus", "Mäuse", f, animal, ""},
      {"cow", "cows", "Kuh", "Kühe", f, animal, ""},
      {"pig", "pigs", "Schwein", "Schweine", n, animal, "s"},
      {"bear", "bears", "Bär", "Bären", m, animal, "en", true},
      {"goat", "goats", "Ziege", "Ziegen", f, animal, ""},
      {"chicken", "chickens", "Huhn", "Hühner", n, animal, "s"},
      {"lion", "lions", "Löwe", "Löwen", m, animal, "n", true},
      {"apple", "apples", "Apfel", "Äpfel", m, food, "s"},
      {"cake", "cakes", "Kuchen", "Kuchen", m, food, "s"},
      {"egg", "eggs", "Ei", "Eier", n, food, "s"},
      {"roll", "rolls", "Brötchen", "Brötchen", n, food, "s"},
      {"soup", "soups", "Suppe", "Suppen", f, food, ""},
      {"potato", "potatoes", "Kartoffel", "Kartoffeln", f, food, ""},
      {"pear", "pears", "Birne", "Birnen", f, food, ""},
      {"book", "books", "Buch", "Bücher", n, reading, "s"},
      {"letter", "letters", "Brief", "Briefe", m, reading, "s"},
      {"newspaper", "newspapers", "Zeitung", "Zeitungen", f, reading, ""},
      {"poem", "poems", "Gedicht", "Gedichte", n, reading, "s"},
      {"hat", "hats", "Hut", "Hüte", m, clothing, "es"},
      {"dress", "dresses", "Kleid", "Kleider", n, clothing, "es"},
      {"shirt", "shirts", "Hemd", "Hemden", n, clothing, "es"},
      {"jacket", "jackets", "Jacke", "Jacken", f, clothing, ""},
      {"coat", "coats", "Mantel", "Mäntel", m, clothing, "s"},
      {"ball", "balls", "Ball", "Bälle", m, object, "s"},
      {"key", "keys", "Schlüssel", "Schlüssel", m, object, "s"},
      {"lamp", "lamps", "Lampe", "Lampen", f, object, ""},
      {"bag", "bags", "Tasche", "Taschen", f, object, ""},
      {"knife", "knives", "Messer", "Messer", n, object, "s"},
      {"picture", "pictures", "Bild", "Bilder", n, object, "es"},
      {"clock", "clocks", "Uhr", "Uhren", f, object, ""},
      {"umbrella", "umbrellas", "Schirm", "Schirme", m, object, "s"},
      {"glass", "glasses", "Glas", "Gläser", n, object, "es"},
      {"door", "doors", "Tür", "Türen", f, opening, ""},
      {"window", "windows", "Fenster", "Fenster", n, opening, "s"},
      {"car", "cars", "Auto", "Autos", n, vehicle, "s"},
      {"bus", "buses", "Bus", "Busse", m, vehicle, "ses"},
      {"train", "trains", "Zug", "Züge", m, vehicle, "es"},
      {"ship", "ships", "Schiff", "Schiffe", n, vehicle, "es"},
      {"table", "tables", "Tisch", "Tische", m, furniture, "es"},
      {"chair", "chairs", "Stuhl", "Stühle", m, furniture, "s"},
      {"bed", "beds", "Bett", "Betten", n, furniture, "s"},
      {"street", "streets", "Straße", "Straßen", f, way, ""},
      {"bridge", "bridges", "Brücke", "Brücken", f, way, ""},
      {"house", "houses", "Haus", "Häuser", n, place, "es"},
      {"garden", "gardens", "Garten", "Gärten", m, place, "s"},
      {"kitchen", "kitchens", "Küche", "Küchen", f, place, ""},
      {"city", "cities", "Stadt", "Städte", f, place, ""},
      {"village", "villages", "Dorf", "Dörfer", n, place, "es"},
      {"forest", "forests", "Wald", "Wälder", m, place, "es"},
      {"school", "schools", "Schule", "Schulen", f, place, ""},
      {"park", "parks", "Park", "Parks", m, place, "s"},
      {"church", "churches", "Kirche", "Kirchen", f, place, ""},
      {"concert", "concerts", "Konzert", "Konzerte", n, event, "s"},
      {"trip", "trips", "Reise", "Reisen", f, event, ""},
      {"game", "games", "Spiel", "Spiele", n, event, "s"},
      {"dance", "dances", "Tanz", "Tänze", m, event, "es"},
  };
  return list;
}

const std::vector<Name>& names() {
  static const std::vector<Name> list = {{"Anna", f}, {"Peter", m}, {"Maria", f}, {"Paul", m},
                                         {"Lena", f}, {"Karl", m},  {"Emma", f},  {"Otto", m}};
  return list;
}

const std::vector<Adjective>& adjectives() {
  static const std::vector<Adjective> list = {
      {"old", "alt", "alt", animate | things, Scale::age},
      {"small", "klein", "klein", animate | things | event, Scale::size},
      {"big", "groß", "groß", animate | things | event, Scale::size},
      {"beautiful", "schön", "schön", animate | (things & ~food) | event},
      {"young", "jung", "jung", animate, Scale::age},
      {"tired", "müde", "müd", animate},
      {"hungry", "hungrig", "hungrig", animate},
      {"happy", "glücklich", "glücklich", animate, Scale::mood},
      {"sad", "traurig", "traurig", animate, Scale::mood},
      {"sick", "krank", "krank", animate},
      {"lazy", "faul", "faul", animate},
      {"clever", "klug", "klug", animate},
      {"strong", "stark", "stark", animate},
      {"brave", "mutig", "mutig", animate},
      {"rich", "reich", "reich", person},
      {"friendly", "freundlich", "freundlich", person},
      {"famous", "berühmt", "berühmt", person | place},
      {"wild", "wild", "wild", animal},
      {"new", "neu", "neu", things & ~food, Scale::age},
      {"expensive", "teuer", "teur", goods, Scale::price},
      {"cheap", "billig", "billig", goods, Scale::price},
      {"heavy", "schwer", "schwer", object | clothing | furniture | vehicle},
      {"dirty", "schmutzig", "schmutzig", clothing | object | opening | vehicle | furniture | way | place},
      {"red", "rot", "rot", clothing | object | vehicle | furniture | opening, Scale::colour},
      {"blue", "blau", "blau", clothing | object | vehicle | furniture | opening, Scale::colour},
      {"white", "weiß", "weiß", clothing | object | vehicle | furniture | opening | animal, Scale::colour},
      {"black", "schwarz", "schwarz", clothing | object | vehicle | furniture | animal, Scale::colour},
      {"dark", "dunkel", "dunkl", place | way},
      {"fresh", "frisch", "frisch", food},
      {"sweet", "süß", "süß", food},
      {"long", "lang", "lang", reading | event | way},
      {"interesting", "interessant", "interessant", reading | event | place},
  };
  return list;
}

const std::vector<Verb>& verbs() {
  using enum Frame;
  constexpr Kinds liked = animate | goods | place | event;
  static const std::vector<Verb> list = {
      {"be", "is", "was", "been", "", "", "sein", "", "ist", "war", "gewesen", true, copula, animate | things | event,
       0, "", Case::nominative, "bin"},
      // Without an object.
      {"sleep", "sleeps", "slept", "slept", "", "", "schlafen", "", "schläft", "schlief", "geschlafen", false,
       intransitive, animate, 0},
      {"laugh", "laughs", "laughed", "laughed", "", "", "lachen", "", "lacht", "lachte", "gelacht", false, intransitive,
       person, 0},
      {"sing", "sings", "sang", "sung", "", "", "singen", "", "singt", "sang", "gesungen", false, intransitive, person,
       0},
      {"dance", "dances", "danced", "danced", "", "", "tanzen", "", "tanzt", "tanzte", "getanzt", false, intransitive,
       person, 0},
      {"work", "works", "worked", "worked", "", "", "arbeiten", "", "arbeitet", "arbeitete", "gearbeitet", false,
       intransitive, person, 0},
      {"run", "runs", "ran", "run", "", "", "laufen", "", "läuft", "lief", "gelaufen", true, intransitive, animate, 0},
      {"jump", "jumps", "jumped", "jumped", "", "", "springen", "", "springt", "sprang", "gesprungen", true,
       intransitive, animate, 0},
      {"disappear", "disappears", "disappeared", "disappeared", "", "", "verschwinden", "", "verschwindet",
       "verschwand", "verschwunden", true, intransitive, animate | goods, 0},
      {"arrive", "arrives", "arrived", "arrived", "", "", "kommen", "an", "kommt", "kam", "angekommen", true,
       intransitive, person | vehicle, 0},
      {"depart", "departs", "departed", "departed", "", "", "fahren", "ab", "fährt", "fuhr", "abgefahren", true,
       intransitive, person | vehicle, 0},
      {"get", "gets", "got", "got", "up", "", "stehen", "auf", "steht", "stand", "aufgestanden", true, intransitive,
       animate, 0},
      // With an accusative object.
      {"see", "sees", "saw", "seen", "", "", "sehen", "", "sieht", "sah", "gesehen", false, accusative, animate,
       animate | things},
      {"find", "finds", "found", "found", "", "", "finden", "", "findet", "fand", "gefunden", false, accusative,
       animate, animate | goods},
      {"buy", "buys", "bought", "bought", "", "", "kaufen", "", "kauft", "kaufte", "gekauft", false, accusative, person,
       animal | goods},
      {"sell", "sells", "sold", "sold", "", "", "verkaufen", "", "verkauft", "verkaufte", "verkauft", false, accusative,
       person, animal | goods},
      {"eat", "eats", "ate", "eaten", "", "", "essen", "", "isst", "aß", "gegessen", false, accusative, animate, food},
      {"read", "reads", "read", "read", "", "", "lesen", "", "liest", "las", "gelesen", false, accusative, person,
       reading},
      {"love", "loves", "loved", "loved", "", "", "lieben", "", "liebt", "liebte", "geliebt", false, accusative, person,
       liked},
      {"know", "knows", "knew", "known", "", "", "kennen", "", "kennt", "kannte", "gekannt", false, accusative, person,
       person | reading | place},
      {"carry", "carries", "carried", "carried", "", "", "tragen", "", "trägt", "trug", "getragen", false, accusative,
       person, object | food | furniture},
      {"wash", "washes", "washed", "washed", "", "", "waschen", "", "wäscht", "wusch", "gewaschen", false, accusative,
       person, clothing | animal | vehicle},
      {"need", "needs", "needed", "needed", "", "", "brauchen", "", "braucht", "brauchte", "gebraucht", false,
       accusative, person, person | goods},
      {"look", "looks", "looked", "looked", "", "for", "suchen", "", "sucht", "suchte", "gesucht", false, accusative,
       animate, animate | goods},
      {"hear", "hears", "heard", "heard", "", "", "hören", "", "hört", "hörte", "gehört", false, accusative, animate,
       animate | vehicle | event},
      {"feed", "feeds", "fed", "fed", "", "", "füttern", "", "füttert", "fütterte", "gefüttert", false, accusative,
       person, animal},
      {"visit", "visits", "visited", "visited", "", "", "besuchen", "", "besucht", "besuchte", "besucht", false,
       accusative, person, person | place | event},
      {"paint", "paints", "painted", "painted", "", "", "malen", "", "malt", "malte", "gemalt", false, accusative,
       person, animate | opening | furniture | place | way},
      {"lose", "loses", "lost", "lost", "", "", "verlieren", "", "verliert", "verlor", "verloren", false, accusative,
       person, object | clothing | reading},
      {"forget", "forgets", "forgot", "forgotten", "", "", "vergessen", "", "vergisst", "vergaß", "vergessen", false,
       accusative, person, person | object | clothing | reading},
      {"repair", "repairs", "repaired", "repaired", "", "", "reparieren", "", "repariert", "reparierte", "repariert",
       false, accusative, person, opening | vehicle | furniture},
      {"open", "opens", "opened", "opened", "", "", "machen", "auf", "macht", "machte", "aufgemacht", false, accusative,
       person, opening | reading},
      {"close", "closes", "closed", "closed", "", "", "machen", "zu", "macht", "machte", "zugemacht", false, accusative,
       person, opening | reading},
      {"pick", "picks", "picked", "picked", "up", "", "holen", "ab", "holt", "holte", "abgeholt", false, accusative,
       person, animate},
      {"invite", "invites", "invited", "invited", "", "", "laden", "ein", "lädt", "lud", "eingeladen", false,
       accusative, person, person},
      {"put", "puts", "put", "put", "on", "", "ziehen", "an", "zieht", "zog", "angezogen", false, accusative, person,
       clothing},
      // With a dative object.
      {"help", "helps", "helped", "helped", "", "", "helfen", "", "hilft", "half", "geholfen", false, dative, person,
       animate, "", Case::dative},
      {"thank", "thanks", "thanked", "thanked", "", "", "danken", "", "dankt", "dankte", "gedankt", false, dative,
       person, person, "", Case::dative},
      {"follow", "follows", "followed", "followed", "", "", "folgen", "", "folgt", "folgte", "gefolgt", true, dative,
       animate, animate | vehicle, "", Case::dative},
      {"listen", "listens", "listened", "listened", "", "to", "hören", "zu", "hört", "hörte", "zugehört", false, dative,
       person, animate, "", Case::dative},
      // With a preposition of their own.
      {"wait", "waits", "waited", "waited", "", "for", "warten", "", "wartet", "wartete", "gewartet", false,
       prepositional, animate, animate | vehicle | event, "auf", Case::accusative},
      {"think", "thinks", "thought", "thought", "", "of", "denken", "", "denkt", "dachte", "gedacht", false,
       prepositional, person, animate | event | place, "an", Case::accusative},
      {"speak", "speaks", "spoke", "spoken", "", "with", "sprechen", "", "spricht", "sprach", "gesprochen", false,
       prepositional, person, person, "mit", Case::dative},
      {"dream", "dreams", "dreamt", "dreamt", "", "about", "träumen", "", "träumt", "träumte", "geträumt", false,
       prepositional, animate, animate | goods | event, "von", Case::dative},
      // With a recipient.
      {"give", "gives", "gave", "given", "", "", "geben", "", "gibt", "gab", "gegeben", false, ditransitive, person,
       goods},
      {"show", "shows", "showed", "shown", "", "", "zeigen", "", "zeigt", "zeigte", "gezeigt", false, ditransitive,
       person, animal | goods | place},
      {"bring", "brings", "brought", "brought", "", "", "bringen", "", "bringt", "brachte", "gebracht", false,
       ditransitive, person, food | reading | clothing | object},
      {"send", "sends", "sent", "sent", "", "", "schicken", "", "schickt", "schickte", "geschickt", false, ditransitive,
       person, reading | clothing | object},
      // Of motion.
      {"go", "goes", "went", "gone", "", "", "gehen", "", "geht", "ging", "gegangen", true, motion, animate, 0},
      {"come", "comes", "came", "come", "", "", "kommen", "", "kommt", "kam", "gekommen", true, motion, animate, 0},
      // With a clause.
      {"say", "says", "said", "said", "", "", "sagen", "", "sagt", "sagte", "gesagt", false, sentential, person, 0},
      {"believe", "believes", "believed", "believed", "", "", "glauben", "", "glaubt", "glaubte", "geglaubt", false,
       sentential, person, 0},
      {"hope", "hopes", "hoped", "hoped", "", "", "hoffen", "", "hofft", "hoffte", "gehofft", false, sentential, person,
       0},
      {"notice", "notices", "noticed", "noticed", "", "", "merken", "", "merkt", "merkte", "gemerkt", false, sentential,
       person, 0},
  };
  return list;
}

const std::vector<Modal>& modals() {
  static const std::vector<Modal> list = {
      {"can", "can", "could", "", "", "", "können", "kann", "konnte"},
      {"must", "must", "had to", "have to", "has to", "had to", "müssen", "muss", "musste"},
      {"want to", "wants to", "wanted to", "want to", "wants to", "wanted to", "wollen", "will", "wollte"},
      {"may", "may", "", "", "", "", "dürfen", "darf", "durfte"},
  };
  return list;
}

const std::vector<Adverb>& adverbs() {
  using enum AdverbKind;
  static const std::vector<Adverb> list = {
      {"today", "heute", time},
      {"yesterday", "gestern", time, AdverbTense::past},
      {"tomorrow", "morgen", time, AdverbTense::future},
      {"now", "jetzt", time, AdverbTense::present},
      {"often", "oft", frequency},
      {"always", "immer", frequency},
      {"sometimes", "manchmal", frequency},
      {"slowly", "langsam", manner},
      {"quickly", "schnell", manner},
      {"here", "hier", here},
      {"there", "dort", here},
  };
  return list;
}

const std::vector<Preposition>& prepositions() {
  static const std::vector<Preposition> list = {
      {"in", "in", Case::dative, place},
      {"on", "auf", Case::dative, furniture | way},
      {"under", "unter", Case::dative, furniture},
      {"behind", "hinter", Case::dative, place | vehicle | furniture},
      {"next to", "neben", Case::dative, place | vehicle | furniture | way},
      {"in front of", "vor", Case::dative, place | vehicle},
      {"with", "mit", Case::dative, animate},
      {"without", "ohne", Case::accusative, animate},
      {"for", "für", Case::accusative, person},
      {"after", "nach", Case::dative, event},
      {"during", "während", Case::genitive, event},
      {"because of", "wegen", Case::genitive, event | animal},
      {"into", "in", Case::accusative, place | vehicle, true},
      {"onto", "auf", Case::accusative, way, true},
      {"to", "zu", Case::dative, person | opening | way, true},
      {"out of", "aus", Case::dative, place | vehicle, true},
  };
  return list;
}

const std::vector<Subordinator>& subordinators() {
  static const std::vector<Subordinator> list = {
      {"because", "weil"}, {"although", "obwohl"}, {"if", "wenn"}, {"while", "während"}};
  return list;
}

}  // namespace headlab::grammar
